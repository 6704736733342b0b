// Groups of the stub: what a thread has called since its outermost ncclGroupStart.
#ifndef MSCCLSH_TEST_STUB_GROUP_H
#define MSCCLSH_TEST_STUB_GROUP_H

#include <functional>

#include "comm.h"

namespace stub {

// start and end are ncclGroupStart and ncclGroupEnd; without runs drops what was called.
ncclResult_t start();
ncclResult_t end(bool runs);

// noted returns a result, and makes an error the group's, which ends with it then.
ncclResult_t noted(ncclResult_t result);

// enqueue takes an operation into this thread's group, or starts it at once.
ncclResult_t enqueue(ncclComm *comm, const Operation &operation);

// create takes what makes something, at the group's end or at once; f sets the state of
// the communicators it makes, and returns what its call returns.
ncclResult_t create(bool blocking, std::function<ncclResult_t()> f);

// misuse counts what NCCL does not allow.
ncclResult_t misuse(ncclResult_t result, const std::string &why);
extern std::atomic<uint64_t> misuses;

}  // namespace stub

#endif
