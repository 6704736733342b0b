#include "place.h"

#include <algorithm>

namespace mscclsh::nccl {

namespace {

unsigned char *plus(const void *p, int64_t bytes) {
  return static_cast<unsigned char *>(const_cast<void *>(p)) + bytes;
}

bool disjoint(const void *a, int64_t a_bytes, const void *b, int64_t b_bytes) {
  const uintptr_t x = reinterpret_cast<uintptr_t>(a), y = reinterpret_cast<uintptr_t>(b);
  return x + uintptr_t(a_bytes) <= y || y + uintptr_t(b_bytes) <= x;
}

// input_holds is whether, in place, the output lies in the input, and not the other way
// round. Where both are one memory it makes no difference.
bool input_holds(const Buffers &b) { return b.send_bytes() > b.recv_bytes(); }

bool aligned(const void *p, int64_t alignment) {
  return reinterpret_cast<uintptr_t>(p) % uintptr_t(alignment) == 0;
}

constexpr int64_t kApart = 256;  // bytes; staged buffers begin at multiples of it

int64_t rounded(int64_t bytes) { return (bytes + kApart - 1) / kApart * kApart; }

}  // namespace

int64_t Buffers::send_bytes() const {
  switch (collective) {
    case MSCCLSH_REDUCESCATTER:
    case MSCCLSH_ALLTOALL:
      return block * ranks;
    case MSCCLSH_BROADCAST:
      return rank == root ? block : 0;
    case MSCCLSH_SCATTER:
      return rank == root ? block * ranks : 0;
    default:
      return block;
  }
}

int64_t Buffers::recv_bytes() const {
  switch (collective) {
    case MSCCLSH_ALLGATHER:
    case MSCCLSH_ALLTOALL:
      return block * ranks;
    case MSCCLSH_REDUCE_TO_ROOT:
      return rank == root ? block : 0;
    case MSCCLSH_GATHER:
      return rank == root ? block * ranks : 0;
    default:
      return block;
  }
}

int64_t Buffers::offset() const {
  switch (collective) {
    case MSCCLSH_ALLGATHER:
    case MSCCLSH_REDUCESCATTER:
      return block * rank;
    case MSCCLSH_GATHER:
    case MSCCLSH_SCATTER:
      return block * root;
    default:
      return 0;
  }
}

Place place_of(const Buffers &b) {
  const int64_t in = b.send_bytes(), out = b.recv_bytes();
  if (in == 0 || out == 0) return Place::kEither;
  const void *large = input_holds(b) ? b.send : b.recv, *small = input_holds(b) ? b.recv : b.send;
  if (plus(large, b.offset()) == small) return Place::kIn;
  return disjoint(b.send, in, b.recv, out) ? Place::kOut : Place::kOverlap;
}

namespace {

// Results is the part of a rank's memory, of the buffer that holds its input, where results
// belong: chunks from from on.
struct Results {
  int32_t from, count;
  bool holds(int32_t at, int32_t n) const { return at >= from && at + n <= from + count; }
};

// one_spoils is spoils_input for a one-sided program: any rank may write there.
bool one_spoils(const mscclsh_one_program &p, int32_t rank, int32_t holder,
                const Results &results) {
  for (int64_t i = 0; i < p.n_ops; i++)
    for (int32_t k = p.ops[i].dst_start; k < p.ops[i].dst_end; k++) {
      const mscclsh_operand &o = p.operands[k];
      const int32_t b = 3 * rank + o.buf;
      if (o.rank == rank && p.base_buf[b] == holder &&
          !results.holds(p.base_chunk[b] + o.index, o.size))
        return true;
    }
  return false;
}

}  // namespace

bool spoils_input(const Table &t, int32_t program, int32_t rank, int32_t collective, int32_t root) {
  const mscclsh_program p = t.flat(program);
  const int32_t *base = p.base_buf + 3 * rank, *first = p.base_chunk + 3 * rank;
  const int32_t holder = base[0];  // the buffer whose memory the input is
  // Results belong in the input's memory where the output lies there too; in a reduction to
  // a root others have that memory, but no result.
  const bool gets = collective != MSCCLSH_REDUCE_TO_ROOT || rank == root;
  const Results results = {first[1], gets && base[1] == holder ? p.chunks[3 * rank + 1] : 0};
  if (t.one(program) != nullptr) return one_spoils(t.one_flat(program), rank, holder, results);
  int64_t tb = 0, step = 0;
  for (int32_t r = 0; r < rank; r++)
    for (int32_t i = 0; i < p.tbs[r]; i++) step += p.steps_per_tb[tb++];
  int64_t last = step;
  for (int32_t i = 0; i < p.tbs[rank]; i++) last += p.steps_per_tb[tb++];
  for (; step < last; step++) {
    const mscclsh_step &s = p.steps[step];
    const bool writes = s.kind != MSCCLSH_NOP && s.kind != MSCCLSH_SEND && s.kind != MSCCLSH_RRS;
    if (!writes || base[s.dst_buf] != holder) continue;
    if (!results.holds(first[s.dst_buf] + s.dst_chunk, s.count)) return true;
  }
  return false;
}

namespace {

// Plan is where things go, before memory is given.
struct Plan {
  bool stage_input = false, stage_output = false;  // of a program out of place
  bool stage_whole = false;                        // of a program in place
};

Plan plan_out(const Buffers &b, const Form &f) {
  Plan p;
  const Place place = place_of(b);
  if (place == Place::kIn || place == Place::kOverlap)
    (input_holds(b) ? p.stage_output : p.stage_input) = true;
  if (b.send_bytes() > 0 && (f.spoils || !aligned(b.send, f.alignment))) p.stage_input = true;
  if (b.recv_bytes() > 0 && !aligned(b.recv, f.alignment)) p.stage_output = true;
  return p;
}

Plan plan_in(const Buffers &b, const Form &f) {
  Plan p;
  const Place place = place_of(b);
  // What holds the program's memory: the input, or the output with the input copied there.
  const bool from_send = input_holds(b);
  const void *holder = from_send ? b.send : b.recv;
  p.stage_whole = !aligned(holder, f.alignment) || place == Place::kOverlap ||
                  (from_send && (f.spoils || place == Place::kOut));
  return p;
}

}  // namespace

int64_t staging_need(const Buffers &b, const Form &f) {
  const int64_t in = b.send_bytes(), out = b.recv_bytes();
  if (f.in_place) return plan_in(b, f).stage_whole ? rounded(std::max(in, out)) : 0;
  const Plan p = plan_out(b, f);
  return (p.stage_input ? rounded(in) : 0) + (p.stage_output ? rounded(out) : 0);
}

namespace {

Staged stage_out(const Buffers &b, const Form &f, void *staging) {
  const Plan p = plan_out(b, f);
  Staged s;
  s.input = const_cast<void *>(b.send);
  s.output = b.recv;
  int64_t used = 0;
  if (p.stage_input) {
    s.input = staging;
    s.before.push_back({s.input, b.send, b.send_bytes()});
    used = rounded(b.send_bytes());
  }
  if (p.stage_output) {
    s.output = plus(staging, used);
    s.after.push_back({b.recv, s.output, b.recv_bytes()});
  }
  if (b.send_bytes() == 0) s.input = nullptr;
  if (b.recv_bytes() == 0) s.output = nullptr;
  return s;
}

Staged stage_in(const Buffers &b, const Form &f, void *staging) {
  const bool whole = plan_in(b, f).stage_whole;
  const bool from_send = input_holds(b);
  const int64_t in = b.send_bytes(), out = b.recv_bytes();
  void *holder = whole ? staging : from_send ? const_cast<void *>(b.send) : b.recv;
  Staged s;
  s.input = from_send ? holder : plus(holder, b.offset());
  s.output = from_send ? plus(holder, b.offset()) : holder;
  // One memory for both, even on ranks that use one of them only.
  if (in == 0) s.input = b.collective == MSCCLSH_BROADCAST ? holder : nullptr;
  if (out == 0) s.output = b.collective == MSCCLSH_REDUCE_TO_ROOT ? holder : nullptr;
  if (in > 0 && s.input != b.send) s.before.push_back({s.input, b.send, in});
  if (out > 0 && s.output != b.recv) s.after.push_back({b.recv, s.output, out});
  return s;
}

}  // namespace

Staged stage(const Buffers &b, const Form &f, void *staging) {
  return f.in_place ? stage_in(b, f, staging) : stage_out(b, f, staging);
}

}  // namespace mscclsh::nccl
