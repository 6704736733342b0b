#include "calls.h"

#include <cstring>

#include "check.h"
#include "numbers.h"

namespace {

constexpr size_t kGuard = 256;
constexpr unsigned char kAround = 0xa5, kNothing = 0xcb;

// value is what rank r has in element i of its input: 1 or 2, so that all types hold the
// results of up to four ranks exactly.
int value(int r, size_t i, int seed) {
  return 1 + int((i * 2654435761u >> 7 ^ size_t(r * 5 + seed)) % 2);
}

// rounded is a number as a type holds it: averages of three are not exact.
double rounded(ncclDataType_t type, double v) {
  unsigned char bytes[8];
  encode(type, v, bytes);
  return decode(type, bytes);
}

const char *const kNames[] = {"ncclAllReduce", "ncclAllGather", "ncclReduceScatter",
                              "ncclBroadcast", "ncclReduce",    "ncclAlltoAll",
                              "ncclGather",    "ncclScatter"};

}  // namespace

const char *function_of(int32_t collective) { return kNames[collective]; }

bool is_rooted(int32_t c) {
  return c == MSCCLSH_BROADCAST || c == MSCCLSH_REDUCE_TO_ROOT || c == MSCCLSH_GATHER ||
         c == MSCCLSH_SCATTER;
}

bool is_reducing(int32_t c) {
  return c == MSCCLSH_ALLREDUCE || c == MSCCLSH_REDUCESCATTER || c == MSCCLSH_REDUCE_TO_ROOT;
}

std::string Call::text() const {
  return std::string(kNames[collective]) + " of " + std::to_string(count) + " of type " +
         std::to_string(type) + ", operation " + std::to_string(op) + ", root " +
         std::to_string(root) + (in_place ? ", in place" : ", out of place") +
         (misaligned ? ", misaligned by " + std::to_string(misaligned) : "");
}

size_t Part::block() const { return call_.count * size_t(format_of(call_.type).bytes); }

size_t Part::send_blocks() const {
  const int32_t c = call_.collective;
  if (c == MSCCLSH_SCATTER) return rank_ == call_.root ? size_t(ranks_) : 0;
  return c == MSCCLSH_REDUCESCATTER || c == MSCCLSH_ALLTOALL ? size_t(ranks_) : 1;
}

size_t Part::recv_blocks() const {
  const int32_t c = call_.collective;
  if (c == MSCCLSH_GATHER) return rank_ == call_.root ? size_t(ranks_) : 0;
  if (c == MSCCLSH_REDUCE_TO_ROOT && rank_ != call_.root) return 0;
  return c == MSCCLSH_ALLGATHER || c == MSCCLSH_ALLTOALL ? size_t(ranks_) : 1;
}

Part::Part(const Call &call, int rank, int ranks) : call_(call), rank_(rank), ranks_(ranks) {
  const size_t off = size_t(call.misaligned) * size_t(format_of(call.type).bytes);
  unsigned char *at[2];
  const size_t bytes[2] = {send_bytes(), recv_bytes()};
  for (int i = 0; i < 2; i++) {
    // One buffer holds both where the call is in place.
    const size_t most = call.in_place && bytes[0] < bytes[1] ? bytes[1] : bytes[i];
    memory_[i].assign(most + 2 * kGuard + 256 + off, kAround);
    const size_t start = reinterpret_cast<size_t>(memory_[i].data()) + kGuard;
    at[i] = memory_[i].data() + kGuard + (256 - start % 256) % 256 + off;
  }
  send_ = at[0];
  recv_ = at[1];
  if (call.in_place && bytes[0] > 0 && bytes[1] > 0) {
    if (bytes[0] < bytes[1]) send_ = recv_ + size_t(rank) * block();
    if (bytes[0] > bytes[1]) recv_ = send_ + size_t(rank) * block();
    if (bytes[0] == bytes[1]) recv_ = send_;
  }
}

Part::Part(const Call &call, int rank, int ranks, void *send, void *recv)
    : call_(call),
      rank_(rank),
      ranks_(ranks),
      send_(static_cast<unsigned char *>(send)),
      recv_(static_cast<unsigned char *>(recv)),
      own_(false) {}

void Part::fill(int seed) {
  seed_ = seed;
  std::memset(recv_, kNothing, recv_bytes());
  const size_t size = size_t(format_of(call_.type).bytes);
  for (size_t i = 0; i < send_bytes() / size; i++)
    encode(call_.type, value(rank_, i, seed), send_ + i * size);
  before_.assign(send_, send_ + send_bytes());
}

ncclResult_t Part::start(ncclComm_t comm, void *on) const {
  const Call &c = call_;
  const cudaStream_t stream = static_cast<cudaStream_t>(on);
  void *const recv = recv_bytes() > 0 ? recv_ : nullptr;
  const void *const send = send_bytes() > 0 ? send_ : nullptr;
  switch (c.collective) {
    case MSCCLSH_ALLREDUCE:
      return ncclAllReduce(send, recv, c.count, c.type, c.op, comm, stream);
    case MSCCLSH_ALLGATHER:
      return ncclAllGather(send, recv, c.count, c.type, comm, stream);
    case MSCCLSH_REDUCESCATTER:
      return ncclReduceScatter(send, recv, c.count, c.type, c.op, comm, stream);
    case MSCCLSH_BROADCAST:
      return ncclBroadcast(send, recv, c.count, c.type, c.root, comm, stream);
    case MSCCLSH_REDUCE_TO_ROOT:
      return ncclReduce(send, recv, c.count, c.type, c.op, c.root, comm, stream);
    case MSCCLSH_ALLTOALL:
      return ncclAlltoAll(send, recv, c.count, c.type, comm, stream);
    case MSCCLSH_GATHER:
      return ncclGather(send, recv, c.count, c.type, c.root, comm, stream);
    default:
      return ncclScatter(send, recv, c.count, c.type, c.root, comm, stream);
  }
}

bool Part::results_right(std::string *why) const {
  const size_t size = size_t(format_of(call_.type).bytes);
  const int32_t c = call_.collective;
  const bool parts = c == MSCCLSH_REDUCESCATTER || c == MSCCLSH_ALLTOALL || c == MSCCLSH_SCATTER;
  for (size_t i = 0; i < recv_bytes() / size; i++) {
    // The element of an input that this result is of.
    const size_t within = i % call_.count;
    const size_t from = parts ? size_t(rank_) * call_.count + within : within;
    double want = 0;
    if (is_reducing(c)) {
      want = value(0, from, seed_);
      for (int r = 1; r < ranks_; r++) want = combine(call_.op, want, value(r, from, seed_));
      want = rounded(call_.type, finish(call_.op, call_.type, want, ranks_));
    } else {
      const bool of_root = c == MSCCLSH_BROADCAST || c == MSCCLSH_SCATTER;
      want = value(of_root ? call_.root : int(i / call_.count), from, seed_);
    }
    const double have = decode(call_.type, recv_ + i * size);
    if (have == want) continue;
    *why = "element " + std::to_string(i) + " is " + std::to_string(have) + ", not " +
           std::to_string(want);
    return false;
  }
  return true;
}

bool Part::rest_untouched(std::string *why) const {
  for (size_t i = 0; i < send_bytes(); i++) {
    if (send_ + i >= recv_ && send_ + i < recv_ + recv_bytes()) continue;
    if (send_[i] == before_[i]) continue;
    *why = "byte " + std::to_string(i) + " of the input was changed";
    return false;
  }
  if (!own_) return true;
  const unsigned char *const ends[4] = {send_, send_ + send_bytes(), recv_, recv_ + recv_bytes()};
  for (const std::vector<unsigned char> &m : memory_) {
    for (const unsigned char &b : m) {
      const bool inside = (&b >= ends[0] && &b < ends[1]) || (&b >= ends[2] && &b < ends[3]);
      if (inside || b == kAround) continue;
      *why = "a byte outside the buffers was changed";
      return false;
    }
  }
  return true;
}

bool Part::wrong(std::string *why) const { return !results_right(why) || !rest_untouched(why); }

bool Part::check(const std::string &what) const {
  std::string why;
  const bool right = !wrong(&why);
  EXPECT(right, "%s: %s: rank %d of %d: %s", what.c_str(), call_.text().c_str(), rank_, ranks_,
         why.c_str());
  return right;
}
