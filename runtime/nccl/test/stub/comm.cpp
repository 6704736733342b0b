#include "comm.h"

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "../numbers.h"

void ncclComm::in_turn(uint64_t turn, const std::function<void()> &f) {
  {
    std::unique_lock<std::mutex> lock(mu);
    changed.wait(lock, [&] { return done == turn; });
  }
  f();
  std::lock_guard<std::mutex> lock(mu);
  done++;
  changed.notify_all();
}

void ncclComm::settle() {
  std::unique_lock<std::mutex> lock(mu);
  const uint64_t upto = given;
  changed.wait(lock, [&] { return done >= upto; });
}

namespace stub {

std::atomic<int> operation_delay_ms{0}, init_delay_ms{0};

namespace {

thread_local std::string last;

using Bytes = std::vector<unsigned char>;

unsigned char *bytes_at(const void *p) {
  return const_cast<unsigned char *>(static_cast<const unsigned char *>(p));
}

// Plan is what a collective comes down to for one rank: which part of its input goes to
// whom, and from whom it gets something.
struct Plan {
  size_t send_bytes = 0, stride = 0;  // part r starts at r * stride of the input
  bool sends_all = false, gets_all = false;
  int sends_only = -1, gets_only = -1;
};

Plan plan_of(const Operation &o, int rank) {
  const size_t bytes = o.count * size_t(format_of(o.type).bytes);
  Plan p;
  p.send_bytes = bytes;
  switch (o.kind) {
    case Kind::kAllReduce:
    case Kind::kAllGather:
      p.sends_all = p.gets_all = true;
      break;
    case Kind::kReduceScatter:
    case Kind::kAllToAll:
      p.sends_all = p.gets_all = true;
      p.stride = bytes;
      break;
    case Kind::kBroadcast:
    case Kind::kScatter:
      p.sends_all = rank == o.root;
      p.gets_only = o.root;
      p.stride = o.kind == Kind::kScatter ? bytes : 0;
      break;
    default:  // kReduce, kGather
      p.gets_all = rank == o.root;
      p.sends_only = o.root;
      break;
  }
  return p;
}

uint32_t tag_of(const Operation &o) {
  return uint32_t(o.kind) << 24 | uint32_t(o.type) << 16 | (uint32_t(o.op) & 0xff) << 8 |
         (uint32_t(o.root) & 0xff);
}

double scalar_of(ncclComm *comm, ncclRedOp_t op) {
  std::lock_guard<std::mutex> lock(comm->mu);
  for (const Scaled &s : comm->scaled)
    if (s.op == op) return s.scalar;
  return 1;
}

// reduce adds up what came from the ranks, in their order.
void reduce(ncclComm *comm, const Operation &o, const std::vector<Bytes> &from) {
  const int ranks = comm->ranks;
  const size_t size = size_t(format_of(o.type).bytes);
  const double scalar = scalar_of(comm, o.op);
  for (size_t i = 0; i < o.count; i++) {
    double v = scalar * decode(o.type, &from[0][i * size]);
    for (int r = 1; r < ranks; r++)
      v = combine(o.op, v, scalar * decode(o.type, &from[size_t(r)][i * size]));
    encode(o.type, finish(o.op, o.type, v, ranks), bytes_at(o.out) + i * size);
  }
}

void collective(ncclComm *comm, const Operation &o) {
  const Plan p = plan_of(o, comm->rank);
  const uint32_t tag = tag_of(o);
  std::vector<Bytes> from(size_t(comm->ranks));
  std::vector<Transfer> moves;
  for (int r = 0; r < comm->ranks; r++) {
    if (p.sends_all || p.sends_only == r)
      moves.push_back({true, r, bytes_at(o.in) + size_t(r) * p.stride, p.send_bytes, tag});
    if (!p.gets_all && p.gets_only != r) continue;
    from[size_t(r)].resize(p.send_bytes + 1);  // never empty
    moves.push_back({false, r, from[size_t(r)].data(), p.send_bytes, tag});
  }
  comm->room->move(moves, comm->stop);
  const bool reduces =
      o.kind == Kind::kAllReduce || o.kind == Kind::kReduceScatter || o.kind == Kind::kReduce;
  if (reduces) {
    if (p.gets_all) reduce(comm, o, from);
    return;
  }
  for (int r = 0; r < comm->ranks; r++)
    if (p.gets_all || p.gets_only == r)
      std::memcpy(bytes_at(o.out) + (p.gets_all ? size_t(r) * p.send_bytes : 0),
                  from[size_t(r)].data(), p.send_bytes);
}

void run_all(ncclComm *comm, const std::vector<Operation> &operations) {
  if (operation_delay_ms > 0) usleep(useconds_t(operation_delay_ms) * 1000);
  std::vector<Transfer> moves;
  for (const Operation &o : operations) {
    if (o.kind != Kind::kSend && o.kind != Kind::kRecv) {
      collective(comm, o);
      continue;
    }
    const bool sends = o.kind == Kind::kSend;
    moves.push_back({sends, o.root, bytes_at(sends ? o.in : o.out),
                     o.count * size_t(format_of(o.type).bytes), 1000 + uint32_t(o.type)});
  }
  if (!moves.empty()) comm->room->move(moves, comm->stop);
}

}  // namespace

ncclResult_t fail(ncclResult_t result, const std::string &why) {
  last = why;
  return result;
}

const char *last_error() { return last.c_str(); }

ncclResult_t behind(ncclComm *comm, bool at_once, std::function<void()> f) {
  if (comm->maker.joinable()) comm->maker.join();
  comm->state = ncclInProgress;
  const auto work = [comm, f = std::move(f)] {
    f();
    ncclResult_t expected = ncclInProgress;  // not where it failed
    comm->state.compare_exchange_strong(expected, ncclSuccess);
  };
  if (at_once && comm->rank == 0) {
    work();
  } else {
    comm->maker = std::thread([work] {
      usleep(useconds_t(operation_delay_ms) * 1000);
      work();
    });
  }
  return ncclInProgress;
}

void run(ncclComm *comm, const std::vector<Operation> &operations) {
  try {
    run_all(comm, operations);
  } catch (const std::runtime_error &e) {
    if (!comm->stop) std::fprintf(stderr, "stub: %s: %s\n", comm->name.c_str(), e.what());
    comm->state = ncclRemoteError;
  }
}

void enter(ncclComm *comm) {
  if (init_delay_ms > 0) usleep(useconds_t(init_delay_ms) * 1000);
  try {
    comm->room.reset(new Room(comm->name, comm->ranks, comm->rank, comm->stop));
    comm->state = ncclSuccess;
  } catch (const std::runtime_error &e) {
    if (!comm->stop) std::fprintf(stderr, "stub: %s: %s\n", comm->name.c_str(), e.what());
    comm->state = ncclSystemError;
  }
}

}  // namespace stub
