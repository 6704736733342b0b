// What the tests of bound calls share: buffers, programs and calls.
#ifndef MSCCLSH_TEST_BOUND_H
#define MSCCLSH_TEST_BOUND_H

#include <utility>

#include "job.h"

inline bool told(const char *part) { return std::strstr(err, part) != nullptr; }

// Buffer is memory between bytes that nobody may touch, as many bytes past a multiple of
// MSCCLSH_PLACE as asked for.
class Buffer {
 public:
  Buffer(int64_t bytes, int64_t past)
      : bytes_(bytes), memory_(size_t(bytes + 2 * kEdge), kEdgeByte) {
    const uintptr_t at = uintptr_t(memory_.data()) + kEdge / 2;
    start_ = kEdge / 2 + (MSCCLSH_PLACE - int64_t(at % MSCCLSH_PLACE)) % MSCCLSH_PLACE + past;
  }
  unsigned char *at() { return memory_.data() + start_; }

  bool edges() const {
    for (int64_t i = 0; i < int64_t(memory_.size()); i++)
      if ((i < start_ || i >= start_ + bytes_) && memory_[size_t(i)] != kEdgeByte) return false;
    return true;
  }

 private:
  static constexpr int64_t kEdge = 256;
  static constexpr unsigned char kEdgeByte = 0x5a;
  int64_t bytes_, start_;
  std::vector<unsigned char> memory_;
};

// Loaded is a program loaded on a communicator, with room for its scratch.
struct Loaded {
  Loaded(Comm *on, Program program, const Case &c) : on(on), p(std::move(program)), c(c) {
    const bool direct = c.protocol == MSCCLSH_DIRECT;
    mscclsh_program flat = p.flatten(c.protocol, direct ? 0 : c.slots, direct ? 0 : c.slot_bytes);
    OK(mscclsh_load(on->comm, &flat, &prog, err, sizeof err));
  }
  ~Loaded() { OK(mscclsh_unload(prog, err, sizeof err)); }
  Loaded(const Loaded &) = delete;
  Loaded &operator=(const Loaded &) = delete;

  bool in_place() const { return p.base_buf[1] == 0; }

  Comm *on;
  Program p;
  Case c;
  mscclsh_prog *prog = nullptr;
};

// Bound is one size of it, with buffers: those of rank r start some elements past a boundary
// that depend on past and on r, the outputs others than the inputs. past 0 is at a boundary,
// and 1, 2, ... are all other places in turn.
struct Bound {
  Bound(Loaded &l, int64_t elems, int32_t regime, int64_t past) : l(l), elems(elems) {
    const Format &f = kFormats[l.c.dtype];
    size.chunk_bytes = elems * f.bytes;
    size.regime = regime;
    size.dtype = l.c.dtype;
    size.op = l.c.op;
    size.threads = l.c.threads;
    for (int32_t r = 0; r < l.c.ranks; r++) {
      const int64_t bytes = l.p.chunks_total * size.chunk_bytes;
      memory.emplace_back(bytes, past ? (past + r) * f.bytes % MSCCLSH_PLACE : 0);
      memory.emplace_back(bytes, past ? (past + 2 * r + 1) * f.bytes % MSCCLSH_PLACE : 0);
    }
    for (int32_t i = 0; i < 2 * l.c.ranks; i++)
      buffers.push_back(i % 2 && l.in_place() ? nullptr : memory[size_t(i)].at());
    for (int32_t d = 0; d < l.c.devices; d++) {
      mscclsh_binding b = {};
      b.size = &size;
      b.buffers = buffers.data();
      b.device = d;
      calls.push_back(nullptr);
      OK(mscclsh_bind(l.prog, &b, &calls.back(), &info, err, sizeof err));
    }
  }
  ~Bound() { unbind(); }
  Bound(const Bound &) = delete;
  Bound &operator=(const Bound &) = delete;

  void unbind() {
    for (mscclsh_call *call : calls) OK(mscclsh_unbind(call, err, sizeof err));
    calls.clear();
  }
  void launch() {
    for (mscclsh_call *call : calls) OK(mscclsh_call_on(call, nullptr, err, sizeof err));
  }

  // launch_at launches these calls with the buffers of another one.
  void launch_at(const Bound &other, int32_t device, void *stream = nullptr) {
    OK(mscclsh_call_at(calls[size_t(device)], other.buffers.data(), stream, err, sizeof err));
  }
  void launch_at(const Bound &other) {
    for (int32_t d = 0; d < l.c.devices; d++) launch_at(other, d);
  }

  unsigned char *result(int32_t r) { return memory[size_t(2 * r + !l.in_place())].at(); }

  // fill needs that nothing runs.
  void fill(int seed) {
    const Format &f = kFormats[l.c.dtype];
    for (int32_t r = 0; r < l.c.ranks; r++) {
      std::memset(result(r), 0xee, size_t(l.p.chunks_total * size.chunk_bytes));
      for (int64_t i = 0; i < l.p.chunks_total * elems; i++) {
        const uint64_t bits = encode(f, value(r, i, seed));
        std::memcpy(memory[size_t(2 * r)].at() + i * f.bytes, &bits, size_t(f.bytes));
      }
    }
  }

  void check(int seed, int32_t root, const char *what) {
    const Format &f = kFormats[l.c.dtype];
    for (int32_t r = 0; r < l.c.ranks; r++) {
      EXPECT(memory[size_t(2 * r)].edges() && memory[size_t(2 * r + 1)].edges(),
             "%s, protocol %d: bytes beside a buffer of rank %d were written", what, l.c.protocol,
             r);
      for (int64_t i = 0; i < l.p.chunks_total * elems; i++) {
        uint64_t bits = 0;
        std::memcpy(&bits, result(r) + i * f.bytes, size_t(f.bytes));
        const double want =
            root >= 0 ? value(root, i, seed) : reduced(l.c.ranks, i, seed, l.c.op, f.exp == 0);
        if (decode(f, bits) == want) continue;
        EXPECT(false,
               "%s, protocol %d, %lld elems a chunk, dtype %d: rank %d element %lld is %g, "
               "want %g",
               what, l.c.protocol, (long long)elems, l.c.dtype, r, (long long)i, decode(f, bits),
               want);
        return;
      }
    }
  }

  Loaded &l;
  const int64_t elems;
  mscclsh_size size = {};
  mscclsh_prepared info = {};
  std::vector<Buffer> memory;   // [ranks*2]
  std::vector<void *> buffers;  // [ranks*2], as they are bound
  std::vector<mscclsh_call *> calls;
};

// test_bound_edges, in bound_edges.cpp, is about what is refused, windows and aborts.
void test_bound_edges();

// test_bound_moves, in bound_moves.cpp, launches calls with other buffers than those they
// were bound to.
void test_bound_moves();

#endif
