// Groups: what a thread has called between ncclGroupStart and the outermost ncclGroupEnd.
//
// NCCL's own group goes on below, with the calls that are left to NCCL. Calls that a program
// serves wait, and are launched in their order when NCCL's group has ended well; if it has
// not, none is. Communicators and windows that are made in a group are there when NCCL's
// group has ended, and are set up then, all at once.
#ifndef MSCCLSH_NCCL_GROUP_H
#define MSCCLSH_NCCL_GROUP_H

#include <functional>
#include <vector>

#include "comms.h"
#include "together.h"

namespace mscclsh::nccl {

// Registered is a window that NCCL makes, or has made, at an address of the caller's.
struct Registered {
  ncclComm_t comm;
  void *memory;
  int64_t bytes;
  ncclWindow_t *at;
};

// Message is a send or a receive that waits for the end of its group, with
// MSCCLSH_GROUP_ALLTOALL.
struct Message {
  bool sends;
  const void *send;
  void *recv;
  size_t count;
  ncclDataType_t type;
  int peer;
  ncclComm_t comm;
  cudaStream_t stream;
};

// as_alltoall finds whether messages, all of one communicator, are an alltoall: one send
// and one receive with every rank, this one included, of one size and type on one stream,
// of blocks that lie one after the other.
//
// A rank can't know whether the others' messages are in one group, and contiguous: their
// sends and receives of this size must exist, or the call were wrong for NCCL as well, but
// a peer may have them in two groups, and would then not take part in the alltoall. So
// there is no proof that the ranks choose alike, and this is only done where the operator
// says that they call alike (MSCCLSH_GROUP_ALLTOALL=1). For the same reason no table entry
// of sendrecv is ever taken: of a ring of sends and receives a rank sees its own two.
// Without a message to itself the rank's own block would have to stay as it is, which no
// alltoall does.
bool as_alltoall(const std::vector<Message> &messages, int32_t ranks, Request *request);

// launch carries out a call that a program serves, and tells what went wrong in NCCL's way.
// all: see Calls::choose_all.
ncclResult_t launch(Rank *rank, const Request &r, int32_t entry, const All *all = nullptr);

// catch_up does what had to wait for NCCL (Rank::later), once NCCL has told that a
// communicator is ready again. ncclInProgress: communicators split off are not set up yet.
ncclResult_t catch_up(Rank *rank);

// hasten waits for NCCL where calls wait for it, and launches them.
void hasten(Rank *rank);

// Group is a thread's.
class Group {
 public:
  bool open() const { return depth_ > 0; }

  ncclResult_t start();
  ncclResult_t end();
  ncclResult_t simulate(ncclSimInfo_t *info);

  // What is put into an open group.
  void add(Rank *rank, const Request &r, int32_t entry) {
    calls_.push_back({rank->comm, r, entry, nullptr});
  }
  void add(const Created &c) { created_.push_back(c); }
  void add(const Registered &r) { registered_.push_back(r); }
  void add(const Message &m) { messages_.push_back(m); }
  void add(Held h) { held_.push_back(std::move(h)); }

  // holds is whether calls of a communicator are held, and pass_by says that a send or a
  // receive of it has gone to NCCL.
  bool holds(ncclComm_t comm) const;
  void pass_by(ncclComm_t comm) {
    if (passed_.empty() || passed_.back() != comm) passed_.push_back(comm);
  }

  // deliver gives NCCL what it gets of the calls of a communicator that are held, null: of all,
  // because they can't be held any longer.
  ncclResult_t deliver(ncclComm_t comm);

 private:
  struct Call {
    ncclComm_t comm;
    Request request;
    int32_t entry;
    std::shared_ptr<const All> all;
  };
  void clear();
  void keep_apart(const std::vector<ncclComm_t> &comms);
  void pass_messages();
  void pass(const std::vector<Message> &messages);
  ncclResult_t launch_all(const std::vector<Call> &calls, bool later);

  int depth_ = 0;
  std::vector<Call> calls_;
  std::vector<Created> created_;
  std::vector<Registered> registered_;
  std::vector<Message> messages_;
  std::vector<Held> held_;
  std::vector<ncclComm_t> passed_;  // communicators of sends and receives
};

// group is this thread's.
Group &group();

// made sets up communicators that NCCL has made. in_progress: it is still at work. Those that
// other ranks have not answered for are ended again, and it fails.
ncclResult_t made(const std::vector<Created> &created, bool in_progress);

// registered opens windows that NCCL has made.
void registered(const std::vector<Registered> &all);

}  // namespace mscclsh::nccl

#endif
