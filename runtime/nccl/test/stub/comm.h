// Communicators and operations of the stub.
#ifndef MSCCLSH_TEST_STUB_COMM_H
#define MSCCLSH_TEST_STUB_COMM_H

#include <nccl.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "room.h"

namespace stub {

enum class Kind {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kBroadcast,
  kReduce,
  kAllToAll,
  kGather,
  kScatter,
  kSend,
  kRecv
};

struct Operation {
  Kind kind;
  const void *in;
  void *out;
  size_t count;
  ncclDataType_t type;
  ncclRedOp_t op;
  int root;  // or peer
  void *stream;
};

// A scalar that ncclRedOpCreatePreMulSum was given.
struct Scaled {
  ncclRedOp_t op;
  double scalar;
  bool destroyed;  // kept for calls that were made before
};

}  // namespace stub

struct ncclComm {
  int ranks = 0, rank = 0, device = 0;
  bool blocking = true;
  std::string name;  // of the room
  std::unique_ptr<stub::Room> room;
  std::atomic<ncclResult_t> state{ncclInProgress};
  std::atomic<bool> stop{false}, finalized{false};
  std::thread maker;

  // Operations run one after the other in the order they were enqueued in.
  std::mutex mu;
  std::condition_variable changed;
  uint64_t given = 0, done = 0;
  bool connected = false;
  int children = 0;  // how many splits and shrinks there were
  std::vector<stub::Scaled> scaled;
  int made_ops = 0;

  uint64_t take_turn() {
    std::lock_guard<std::mutex> lock(mu);
    return given++;
  }
  // in_turn runs f when all turns before are over.
  void in_turn(uint64_t turn, const std::function<void()> &f);
  // settle waits for all turns that were taken.
  void settle();
};

namespace stub {

// enter makes a communicator's room, and run carries out operations of one group: its
// collectives, then its sends and receives together. Both note failures in its state.
void enter(ncclComm *comm);
void run(ncclComm *comm, const std::vector<Operation> &operations);

// behind does what a communicator that doesn't block was asked, on its own thread: it is in
// progress until then. at_once: rank 0 has done it when this returns, the others after the
// delay of operations, so that ranks differ in what NCCL has done by then.
ncclResult_t behind(ncclComm *comm, bool at_once, std::function<void()> f);

// all_tell is an allgather of one value each, for splits.
template <class T>
std::vector<T> all_tell(ncclComm *comm, const T &mine);

// fail notes an error of this thread for ncclGetLastError, and returns result.
ncclResult_t fail(ncclResult_t result, const std::string &why);
const char *last_error();

// operation_delay_ms and init_delay_ms are what stub_slow said.
extern std::atomic<int> operation_delay_ms, init_delay_ms;

template <class T>
std::vector<T> all_tell(ncclComm *comm, const T &mine) {
  std::vector<T> all(size_t(comm->ranks));
  T copy = mine;
  std::vector<Transfer> moves;
  for (int r = 0; r < comm->ranks; r++) {
    moves.push_back({true, r, reinterpret_cast<unsigned char *>(&copy), sizeof(T), 77});
    moves.push_back({false, r, reinterpret_cast<unsigned char *>(&all[size_t(r)]), sizeof(T), 77});
  }
  comm->room->move(moves, comm->stop);
  return all;
}

}  // namespace stub

#endif
