// What is counted of the stub's functions, and who has a communicator.
#ifndef MSCCLSH_TEST_STUB_CALLS_H
#define MSCCLSH_TEST_STUB_CALLS_H

#include "comm.h"

namespace stub {

// count notes one call, and returns what stub_fail said that it is to return.
ncclResult_t count(const char *name);

// take makes a communicator and give frees it; its memory is the next one's, so that two
// one after the other are at one address. live says whether it is one of these.
ncclComm *take();
void give(ncclComm *comm);
bool live(const ncclComm *comm);

// Set by stub_idle.
extern std::atomic<bool> idle;

// The device of communicators that this thread makes, -1: the rank's number.
extern thread_local int device;

}  // namespace stub

// Start each function, and each that moves data: count it, and fail if it is to.
#define STUB_CALL(name) \
  if (const ncclResult_t r = stub::count(name); r != ncclSuccess) return r;

#define STUB_MOVE(name)               \
  if (stub::idle) return ncclSuccess; \
  STUB_CALL(name)

// Makes pncclX another name of ncclX, as NCCL has it.
#define STUB_P(name) \
  decltype(nccl##name) pnccl##name __attribute__((alias("nccl" #name), visibility("default")))

#define STUB_API extern "C" __attribute__((visibility("default")))

#endif
