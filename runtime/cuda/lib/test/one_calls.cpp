// One-sided programs bound to sizes and to buffers of the caller's.
#include <algorithm>
#include <memory>

#include "bound.h"
#include "mscclsh_host_stream.h"
#include "one_calls.h"

namespace {

// OneLoaded is a one-sided program, with scratch for chunks of so many elements of 4 bytes.
struct OneLoaded {
  OneLoaded(Comm *on, OneProgram program, int64_t most)
      : on(on), p(std::move(program)), devices(std::min(p.ranks, 4)) {
    const mscclsh_one_program flat = p.flatten();
    OK(mscclsh_one_load(on->comm, &flat, &prog, err, sizeof err));
    OK(mscclsh_one_reserve(prog, 4 * most, err, sizeof err));
  }
  ~OneLoaded() { OK(mscclsh_unload(prog, err, sizeof err)); }
  OneLoaded(const OneLoaded &) = delete;
  OneLoaded &operator=(const OneLoaded &) = delete;

  Comm *on;
  const OneProgram p;
  const int32_t devices;
  mscclsh_prog *prog = nullptr;
};

// OneBound is one size of it, with buffers, of int32 sums.
struct OneBound {
  OneBound(OneLoaded &l, int64_t elems, int64_t past, bool one_memory = false, int32_t op = 0,
           int32_t dtype = 8)
      : l(l), elems(elems), one_memory(one_memory) {
    mscclsh_size size = {};
    size.chunk_bytes = 4 * elems;
    size.regime = 1;
    size.dtype = dtype;
    size.op = op;
    size.threads = 3;
    const mscclsh_one_program p = l.p.flatten();
    for (int32_t r = 0; r < l.p.ranks; r++)
      for (int32_t b = 0; b < 2; b++)
        memory.emplace_back(4 * elems * p.chunks[3 * r + b],
                            past ? 4 * (past + r + 3 * b) % MSCCLSH_PLACE : 0);
    for (size_t i = 0; i < memory.size(); i++)
      buffers.push_back(memory[one_memory ? i & ~size_t(1) : i].at());
    mscclsh_binding b = {};
    b.size = &size;
    b.buffers = buffers.data();
    b.one_memory = one_memory;
    for (; b.device < l.devices; b.device++) {
      calls.push_back(nullptr);
      OK(mscclsh_bind(l.prog, &b, &calls.back(), &info, err, sizeof err));
    }
  }
  ~OneBound() { unbind(); }
  OneBound(const OneBound &) = delete;
  OneBound &operator=(const OneBound &) = delete;

  void unbind() {
    for (mscclsh_call *call : calls) OK(mscclsh_unbind(call, err, sizeof err));
    calls.clear();
  }
  void launch() {
    for (mscclsh_call *call : calls) OK(mscclsh_call_on(call, nullptr, err, sizeof err));
  }
  void launch_at(const OneBound &other) {
    for (mscclsh_call *call : calls)
      OK(mscclsh_call_at(call, other.buffers.data(), nullptr, err, sizeof err));
  }

  // fill needs that nothing runs.
  void fill(int seed) {
    const mscclsh_one_program p = l.p.flatten();
    for (int32_t r = 0; r < l.p.ranks; r++) {
      std::memset(buffers[size_t(2 * r + 1)], 0xee, size_t(4 * elems * p.chunks[3 * r + 1]));
      for (int64_t i = 0; i < elems * p.chunks[3 * r]; i++) {
        const int32_t v = one_input(r, i, seed);
        std::memcpy(static_cast<char *>(buffers[size_t(2 * r)]) + 4 * i, &v, 4);
      }
    }
  }

  // check wants element i of chunk c of rank r's output to be want(r, c, i).
  void check(const char *what, const Wanted &want) {
    const mscclsh_one_program p = l.p.flatten();
    for (Buffer &b : memory) EXPECT(b.edges(), "%s: bytes beside a buffer were written", what);
    for (int32_t r = 0; r < l.p.ranks; r++)
      for (int64_t i = 0; i < elems * p.chunks[3 * r + 1]; i++) {
        int32_t v = 0;
        std::memcpy(&v, static_cast<char *>(buffers[size_t(2 * r + 1)]) + 4 * i, 4);
        const int32_t w = want(r, int32_t(i / elems), i % elems);
        if (v == w) continue;
        EXPECT(false, "%s, %lld elems: rank %d element %lld is %d, want %d", what, (long long)elems,
               r, (long long)i, v, w);
        return;
      }
  }

  OneLoaded &l;
  const int64_t elems;
  const bool one_memory;
  mscclsh_prepared info = {};
  std::vector<Buffer> memory;   // [ranks*2]
  std::vector<void *> buffers;  // [ranks*2]
  std::vector<mscclsh_call *> calls;
};

// own_of wants a rank's own input.
Wanted own_of(int64_t elems, int seed) {
  return [=](int32_t r, int32_t c, int64_t i) { return one_input(r, c * elems + i, seed); };
}

// kSizes are of chunks, elements: they take turns without anybody waiting in between.
constexpr int64_t kSizes[] = {4, 500, 20, 64, 8, 300};
constexpr int64_t kMost = 500;

// in_turn launches all sizes, again and again in another order, some twice, some with buffers
// that come with the launch, and in between the program as it is prepared, if it is.
void in_turn(OneLoaded &l, const char *what, bool moves, bool prepared,
             const std::function<Wanted(int64_t, int)> &want) {
  std::vector<std::unique_ptr<OneBound>> all, others;
  for (const int64_t elems : kSizes) {
    all.emplace_back(new OneBound(l, elems, elems % 3));
    others.emplace_back(new OneBound(l, elems, elems % 3));
    others.back()->unbind();
  }
  mscclsh_size size = {};
  size.chunk_bytes = 80;
  size.regime = 1;
  size.dtype = 8;
  if (prepared) OK(mscclsh_prepare(l.prog, &size, nullptr, err, sizeof err));
  const int n = int(all.size());
  for (int k = 0; k < 15; k++) {
    for (int i = 0; i < n; i++) {
      all[size_t(i)]->fill(k + i);
      others[size_t(i)]->fill(k + 2 * i);
    }
    for (int i = 0; i < 2 * n; i++) {
      OneBound &b = *all[size_t((k + i * 5) % n)];
      b.launch();
      if (moves) b.launch_at(*others[size_t((k + i * 5) % n)]);
      if (prepared && i % 4 == k % 4) {
        OK(mscclsh_sync(l.on->comm, err, sizeof err));
        OK(mscclsh_enqueue(l.prog, 1 + k % 2, err, sizeof err));
        OK(mscclsh_sync(l.on->comm, err, sizeof err));
      }
    }
    OK(mscclsh_sync(l.on->comm, err, sizeof err));
    for (int i = 0; i < n; i++) {
      all[size_t(i)]->check(what, want(all[size_t(i)]->elems, k + i));
      if (moves) others[size_t(i)]->check(what, want(all[size_t(i)]->elems, k + 2 * i));
    }
  }
}

void test_sizes() {
  for (int32_t n : {2, 3}) {
    for (bool prepared : {false, true}) {
      Comm comm(n, n, 0, 0);
      OneLoaded puts(&comm, gather_all(n, false), 0), ports(&comm, gather_all(n, true), 0);
      OneLoaded relayed(&comm, relay(n), kMost);
      in_turn(puts, "puts", false, prepared, [](int64_t, int k) { return gather_of(k); });
      in_turn(ports, "ports", false, prepared, [](int64_t, int k) { return gather_of(k); });
      in_turn(relayed, "relay", true, prepared, [=](int64_t, int k) {
        return [=](int32_t r, int32_t, int64_t i) { return one_input((r + n - 1) % n, i, k); };
      });
      OneLoaded packets(&comm, reduce_all(n), kMost);
      in_turn(packets, "packets", true, prepared, [=](int64_t, int k) { return sum_of(n, k); });
    }
  }
  Comm comm(1, 1, 0, 0);
  OneLoaded drawn(&comm, tokens(), kMost), slow(&comm, lengthy(), kMost);
  in_turn(drawn, "tokens", true, false, own_of);
  in_turn(slow, "lengthy", true, false, own_of);
}

// Programs take turns with each other, with one of sends and receives, and with copies.
void test_mixed() {
  const int32_t n = 3;
  Comm comm(n, n, 0, 0);
  OK(mscclsh_reserve(comm.comm, 4096, err, sizeof err));
  OneLoaded puts(&comm, gather_all(n, false), 0), ports(&comm, gather_all(n, true), 0);
  OneLoaded relayed(&comm, relay(n), kMost), packets(&comm, reduce_all(n), kMost);
  Case c = {n, n, MSCCLSH_SIMPLE, 3, 512, 0, 0, 0, 3, 0, 0};
  Loaded pairs(&comm, all_pairs(n), c);
  Bound two(pairs, 64, 1, 1);
  OneBound a(puts, 64, 1), b(ports, 20, 0), d(relayed, 200, 1), e(packets, 100, 2);
  std::vector<int32_t> kept(64 * n);
  for (int k = 0; k < 40; k++) {
    two.fill(k);
    for (OneBound *x : {&a, &b, &d, &e}) x->fill(k);
    for (int i = 0; i < 6; i++) {
      switch ((k * 5 + i) % 5) {
        case 0:
          a.launch();
          OK(mscclsh_copy_on(comm.comm, 1, nullptr, kept.data(), a.buffers[3],
                             int64_t(4 * kept.size()), err, sizeof err));
          break;
        case 1:
          b.launch();
          break;
        case 2:
          d.launch();
          break;
        case 3:
          e.launch();
          break;
        default:
          two.launch();
      }
    }
    OK(mscclsh_sync(comm.comm, err, sizeof err));
    a.check("puts among others", gather_of(k));
    b.check("ports among others", gather_of(k));
    d.check("relay among others",
            [=](int32_t r, int32_t, int64_t i) { return one_input((r + n - 1) % n, i, k); });
    e.check("packets among others", sum_of(n, k));
    two.check(k, -1, "sends and receives among others");
    for (size_t i = 0; i < kept.size(); i++)
      EXPECT(kept[i] == one_input(int32_t(i) / 64, int64_t(i) % 64, k), "copied element %zu is %d",
             i, kept[i]);
  }
}

// Flags come round where all launches are of one size; input and output are one memory on some
// ranks and not on others.
void test_one_memory() {
  for (int32_t n : {2, 3}) {
    Comm comm(n, n, 16, 0);
    OneLoaded l(&comm, reduce_all(n, true), 100);
    OneBound in(l, 100, 0, true), out(l, 100, 0);
    for (int k = 0; k < 70; k++) {
      in.fill(k);
      out.fill(k);
      for (int i = 0; i < 3; i++) {
        for (int32_t d = 0; d < n; d++)
          OK(mscclsh_call_on((d + k + i) % 2 && i == 0 ? in.calls[size_t(d)] : out.calls[size_t(d)],
                             nullptr, err, sizeof err));
      }
      OK(mscclsh_sync(comm.comm, err, sizeof err));
      out.launch();
      OK(mscclsh_sync(comm.comm, err, sizeof err));
      out.check("in place beside others", sum_of(n, k));
      in.fill(k);
      in.launch();
      OK(mscclsh_sync(comm.comm, err, sizeof err));
      in.check("in place", sum_of(n, k));
    }
  }
}

// Averages divide where the output of the launch is; minima take their own kernel. Inputs are
// whole numbers, so that a sum is exact.
void test_reductions() {
  const int32_t n = 2, fp32 = 0, avg = 4, min = 2;
  Comm comm(n, n, 0, 0);
  OneProgram p = reduce_all(n);
  const mscclsh_divide divides[] = {{0, 0, 1, n}, {1, 0, 1, n}};
  mscclsh_one_program flat = p.flatten();
  flat.divides = divides;
  flat.n_divides = 2;
  mscclsh_prog *prog = nullptr;
  OK(mscclsh_one_load(comm.comm, &flat, &prog, err, sizeof err));
  OK(mscclsh_one_reserve(prog, 400, err, sizeof err));
  for (const int32_t op : {avg, min}) {
    mscclsh_prepared fit = {};
    OK(mscclsh_fits(prog, fp32, op, 0, &fit, err, sizeof err));
    EXPECT(fit.blocks_needed == 1 && fit.blocks_resident >= 1, "%d blocks", fit.blocks_needed);
    alignas(16) float in[n][100], out[n][100];
    for (int i = 0; i < 100; i++)
      for (int r = 0; r < n; r++) in[r][i] = float((i * 7 + r * 13) % 50);
    void *buffers[] = {in[0], out[0], in[1], out[1]};
    mscclsh_size size = {};
    size.chunk_bytes = 400;
    size.regime = 1;
    size.op = op;
    for (int32_t d = 0; d < n; d++) {
      mscclsh_binding b = {};
      b.size = &size;
      b.buffers = buffers;
      b.device = d;
      mscclsh_call *call = nullptr;
      OK(mscclsh_bind(prog, &b, &call, nullptr, err, sizeof err));
      OK(mscclsh_call_on(call, nullptr, err, sizeof err));
      OK(mscclsh_unbind(call, err, sizeof err));
    }
    OK(mscclsh_sync(comm.comm, err, sizeof err));
    for (int i = 0; i < 100; i++)
      for (int r = 0; r < n; r++) {
        const float a = float(i * 7 % 50), b = float((i * 7 + 13) % 50);
        const float want = op == avg ? (a + b) / 2 : std::min(a, b);
        EXPECT(out[r][i] == want, "reduction %d, element %d is %g, want %g", op, i,
               double(out[r][i]), double(want));
      }
  }
  OK(mscclsh_unload(prog, err, sizeof err));
}

void refuse(int32_t got, int32_t want, const char *words) {
  EXPECT(got == want && told(words), "got %d (%s), want %d: %s", got, err, want, words);
}

void test_refusals() {
  const int32_t n = 2;
  Comm comm(n, n, 0, 0);
  OneLoaded packets(&comm, reduce_all(n, true), 8), puts(&comm, gather_all(n, false), 0);
  alignas(16) int32_t memory[4][64] = {};
  void *good[] = {memory[0], memory[1], memory[2], memory[3]};
  mscclsh_size size = {};
  size.chunk_bytes = 32;
  size.regime = 1;
  size.dtype = 8;
  mscclsh_binding b = {};
  b.size = &size;
  b.buffers = good;
  mscclsh_call *call = nullptr;
  auto bind = [&](const OneLoaded &l, int32_t want, const char *words) {
    refuse(mscclsh_bind(l.prog, &b, &call, nullptr, err, sizeof err), want, words);
  };
  size.chunk_bytes = 48;
  bind(packets, MSCCLSH_EREFUSED, "is for chunks of up to 32 bytes, not 48");
  size.chunk_bytes = 40;
  bind(packets, MSCCLSH_EINVAL, "chunks of 40 bytes of elements of 4, cut at multiples of 16");
  size.chunk_bytes = 32;
  size.regime = 2;
  bind(packets, MSCCLSH_EINVAL, "2 a message");
  size.regime = 1;
  void *same[] = {memory[0], memory[0], memory[2], memory[3]};
  b.buffers = same;
  bind(packets, MSCCLSH_EINVAL, "input and output of rank 0 overlap");
  b.one_memory = 1;
  OK(mscclsh_bind(packets.prog, &b, &call, nullptr, err, sizeof err));
  refuse(mscclsh_one_reserve(packets.prog, 48, err, sizeof err), MSCCLSH_EINVAL,
         "calls are bound that use the scratch");
  OK(mscclsh_one_reserve(packets.prog, 32, err, sizeof err));
  refuse(mscclsh_unload(packets.prog, err, sizeof err), MSCCLSH_EINVAL, "1 bound call");
  OK(mscclsh_unbind(call, err, sizeof err));
  b.buffers = good;
  bind(puts, MSCCLSH_EINVAL, "this one has no say");
  b.one_memory = 0;
  OK(mscclsh_bind(puts.prog, &b, &call, nullptr, err, sizeof err));
  refuse(mscclsh_call_at(call, good, nullptr, err, sizeof err), MSCCLSH_EINVAL,
         "touches peers' input or output has the buffers");
  OK(mscclsh_unbind(call, err, sizeof err));
  const mscclsh_window *windows[2] = {};
  b.windows = windows;
  bind(puts, MSCCLSH_EINVAL, "no window is given for the input");
  bind(packets, MSCCLSH_EINVAL, "windows are for programs that touch peers'");
  refuse(mscclsh_one_reserve(packets.prog, 24, err, sizeof err), MSCCLSH_EINVAL,
         "cut at multiples of 16");
  refuse(mscclsh_one_reserve(packets.prog, int64_t(1) << 50, err, sizeof err), MSCCLSH_EREFUSED,
         "chunks of scratch");
  OK(mscclsh_one_reserve(packets.prog, 1600, err, sizeof err));
  mscclsh_prepared fit = {};
  refuse(mscclsh_fits(packets.prog, 99, 0, 0, &fit, err, sizeof err), MSCCLSH_EINVAL, "99");
  OneProgram many(1, 1, 1, 0);
  for (int i = 0; i < 600; i++) many.block(0);
  Comm one(1, 1, 0, 0);
  OneLoaded big(&one, many, 0);
  refuse(mscclsh_fits(big.prog, 0, 0, 4, &fit, err, sizeof err), MSCCLSH_EREFUSED,
         "needs 600 thread blocks of 4 threads at once, but 500 fit");
  Case c = {n, n, MSCCLSH_LL, 3, 512, 0, 0, 0, 0, 0, 0};
  Loaded two(&comm, all_pairs(n), c);
  refuse(mscclsh_one_reserve(two.prog, 16, err, sizeof err), MSCCLSH_EINVAL, "mscclsh_reserve");
}

// A rank whose peer never launches is ended by its watchdog, or by abort.
void test_ends() {
  for (bool aborts : {false, true}) {
    const int32_t n = 2;
    Comm comm(n, n, 0, aborts ? 60000000000 : 50000000);
    OneLoaded l(&comm, relay(n), 64);
    OneBound b(l, 64, 0);
    b.fill(1);
    OK(mscclsh_call_on(b.calls[0], nullptr, err, sizeof err));
    if (aborts) OK(mscclsh_abort(comm.comm, err, sizeof err));
    refuse(mscclsh_sync(comm.comm, err, sizeof err), aborts ? MSCCLSH_EDEAD : MSCCLSH_ESTUCK,
           aborts ? "was aborted" : "rank 0 thread block");
    refuse(mscclsh_call_on(b.calls[1], nullptr, err, sizeof err), MSCCLSH_EDEAD, "new one");
  }
}

}  // namespace

void test_one_calls() {
  test_sizes();
  test_mixed();
  test_one_memory();
  test_reductions();
  test_refusals();
  test_ends();
}
