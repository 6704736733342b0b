// Calls that all ranks of a communicator make in one group of one thread, all of them in this
// process. What no rank knows by itself is known there: where the others' buffers are. So a
// program of protocol Direct can serve them that are in no window.
//
// Which calls belong together follows from their numbers: each rank counts its collective
// calls, and those of one number are one collective, because NCCL takes them in that order.
// Once a call has failed on a rank nobody knows whether the others count it, and no calls of
// the communicator are taken for belonging together any more.
#ifndef MSCCLSH_NCCL_TOGETHER_H
#define MSCCLSH_NCCL_TOGETHER_H

#include <functional>
#include <memory>
#include <vector>

#include "comms.h"

namespace mscclsh::nccl {

// Held is a call that waits for the end of its group, and how NCCL gets it.
struct Held {
  ncclComm_t comm;
  Request request;
  uint64_t number;  // among the rank's calls
  std::function<ncclResult_t()> pass;
};

// Decided is the entry that serves a call; -1: it is NCCL's. all: it is served together with
// the other ranks', whose buffers these are.
struct Decided {
  int32_t entry = -1;
  std::shared_ptr<const All> all;
};

// decide says what becomes of calls, those of a group that were held, in their order. Programs
// come behind what NCCL gets in the group, on each rank's stream. So calls of a communicator
// are served together only if all of its calls in the group are there of all ranks: else a
// later one, which NCCL gets, would wait for one that comes behind a program on another rank.
// others are communicators that have sends and receives in the group, of which that is not
// known.
std::vector<Decided> decide(const std::vector<Held> &held, const std::vector<ncclComm_t> &others);

// entry_of finds the entry for one rank's call by itself, and counts it.
int32_t entry_of(Rank *rank, const Request &r);

}  // namespace mscclsh::nccl

#endif
