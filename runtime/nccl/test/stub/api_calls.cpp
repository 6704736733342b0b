// The stub's functions that move data, and the rest.
#include <cstdlib>
#include <cstring>

#include "../numbers.h"
#include "calls.h"
#include "group.h"

using namespace stub;

namespace {

bool known(ncclComm *comm, ncclRedOp_t op) {
  if (op >= 0 && op < ncclNumOps) return true;
  std::lock_guard<std::mutex> lock(comm->mu);
  for (const Scaled &s : comm->scaled)
    if (s.op == op && !s.destroyed) return true;
  return false;
}

// check is what NCCL checks before it takes a call.
ncclResult_t check(ncclComm *comm, const Operation &o) {
  if (!live(comm)) return misuse(ncclInvalidArgument, "a communicator is used that is no more");
  const ncclResult_t state = comm->state;
  if (state == ncclInProgress)
    return misuse(ncclInvalidArgument, "a communicator is used before it is made");
  if (comm->finalized) return fail(ncclInvalidUsage, "the communicator was finalized");
  if (state != ncclSuccess) return fail(state, "the communicator has failed");
  if (int(o.type) < 0 || o.type >= ncclNumTypes) return fail(ncclInvalidArgument, "no such type");
  if (o.root < 0 || o.root >= comm->ranks) return fail(ncclInvalidArgument, "no such rank");
  if (!known(comm, o.op)) return fail(ncclInvalidArgument, "no such operation");
  return ncclSuccess;
}

ncclResult_t begin(ncclComm *comm, const Operation &o) {
  const ncclResult_t result = noted(check(comm, o));
  return result != ncclSuccess || o.count == 0 ? result : enqueue(comm, o);
}

}  // namespace

STUB_API ncclResult_t ncclAllReduce(const void *in, void *out, size_t n, ncclDataType_t type,
                                    ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  STUB_MOVE("ncclAllReduce");
  return begin(comm, {Kind::kAllReduce, in, out, n, type, op, 0, stream});
}
STUB_P(AllReduce);

STUB_API ncclResult_t ncclReduce(const void *in, void *out, size_t n, ncclDataType_t type,
                                 ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  STUB_MOVE("ncclReduce");
  return begin(comm, {Kind::kReduce, in, out, n, type, op, root, stream});
}
STUB_P(Reduce);

STUB_API ncclResult_t ncclReduceScatter(const void *in, void *out, size_t n, ncclDataType_t type,
                                        ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  STUB_MOVE("ncclReduceScatter");
  return begin(comm, {Kind::kReduceScatter, in, out, n, type, op, 0, stream});
}
STUB_P(ReduceScatter);

STUB_API ncclResult_t ncclAllGather(const void *in, void *out, size_t n, ncclDataType_t type,
                                    ncclComm_t comm, cudaStream_t stream) {
  STUB_MOVE("ncclAllGather");
  return begin(comm, {Kind::kAllGather, in, out, n, type, ncclSum, 0, stream});
}
STUB_P(AllGather);

STUB_API ncclResult_t ncclBroadcast(const void *in, void *out, size_t n, ncclDataType_t type,
                                    int root, ncclComm_t comm, cudaStream_t stream) {
  STUB_MOVE("ncclBroadcast");
  return begin(comm, {Kind::kBroadcast, in, out, n, type, ncclSum, root, stream});
}
STUB_P(Broadcast);

// As NCCL's does, it calls an exported function.
STUB_API ncclResult_t ncclBcast(void *buffer, size_t n, ncclDataType_t type, int root,
                                ncclComm_t comm, cudaStream_t stream) {
  STUB_CALL("ncclBcast");
  return ncclBroadcast(buffer, buffer, n, type, root, comm, stream);
}
STUB_P(Bcast);

STUB_API ncclResult_t ncclAlltoAll(const void *in, void *out, size_t n, ncclDataType_t type,
                                   ncclComm_t comm, cudaStream_t stream) {
  STUB_MOVE("ncclAlltoAll");
  return begin(comm, {Kind::kAllToAll, in, out, n, type, ncclSum, 0, stream});
}
STUB_P(AlltoAll);

STUB_API ncclResult_t ncclGather(const void *in, void *out, size_t n, ncclDataType_t type, int root,
                                 ncclComm_t comm, cudaStream_t stream) {
  STUB_MOVE("ncclGather");
  return begin(comm, {Kind::kGather, in, out, n, type, ncclSum, root, stream});
}
STUB_P(Gather);

STUB_API ncclResult_t ncclScatter(const void *in, void *out, size_t n, ncclDataType_t type,
                                  int root, ncclComm_t comm, cudaStream_t stream) {
  STUB_MOVE("ncclScatter");
  return begin(comm, {Kind::kScatter, in, out, n, type, ncclSum, root, stream});
}
STUB_P(Scatter);

STUB_API ncclResult_t ncclSend(const void *in, size_t n, ncclDataType_t type, int peer,
                               ncclComm_t comm, cudaStream_t stream) {
  STUB_MOVE("ncclSend");
  return begin(comm, {Kind::kSend, in, nullptr, n, type, ncclSum, peer, stream});
}
STUB_P(Send);

STUB_API ncclResult_t ncclRecv(void *out, size_t n, ncclDataType_t type, int peer, ncclComm_t comm,
                               cudaStream_t stream) {
  STUB_MOVE("ncclRecv");
  return begin(comm, {Kind::kRecv, nullptr, out, n, type, ncclSum, peer, stream});
}
STUB_P(Recv);

STUB_API ncclResult_t ncclGroupStart() {
  STUB_CALL("ncclGroupStart");
  return start();
}
STUB_P(GroupStart);

STUB_API ncclResult_t ncclGroupEnd() {
  if (const ncclResult_t r = count("ncclGroupEnd"); r != ncclSuccess) {
    end(false);
    return r;
  }
  return end(true);
}
STUB_P(GroupEnd);

STUB_API ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t *info) {
  STUB_CALL("ncclGroupSimulateEnd");
  info->estimatedTime = 1;
  return end(false);
}
STUB_P(GroupSimulateEnd);

STUB_API ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t type,
                                               ncclScalarResidence_t, ncclComm_t comm) {
  STUB_CALL("ncclRedOpCreatePreMulSum");
  std::lock_guard<std::mutex> lock(comm->mu);
  *op = ncclRedOp_t(ncclNumOps + comm->made_ops++);
  comm->scaled.push_back({*op, decode(type, scalar), false});
  return ncclSuccess;
}
STUB_P(RedOpCreatePreMulSum);

STUB_API ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
  STUB_CALL("ncclRedOpDestroy");
  std::lock_guard<std::mutex> lock(comm->mu);
  for (Scaled &s : comm->scaled)
    if (s.op == op && !s.destroyed) {
      s.destroyed = true;
      return ncclSuccess;
    }
  return fail(ncclInvalidArgument, "no such operation");
}
STUB_P(RedOpDestroy);

// What was freed last is allocated first, so that two allocations come at one address.
namespace {
struct Heap {
  std::mutex mu;
  std::map<void *, size_t> sizes;
  std::vector<void *> free;
};
Heap &heap() {
  static Heap *h = new Heap;
  return *h;
}
}  // namespace

STUB_API ncclResult_t ncclMemAlloc(void **at, size_t bytes) {
  STUB_CALL("ncclMemAlloc");
  Heap &h = heap();
  std::lock_guard<std::mutex> lock(h.mu);
  bytes = (bytes + 4095) / 4096 * 4096;
  for (size_t i = h.free.size(); i-- > 0;) {
    if (h.sizes[h.free[i]] != bytes) continue;
    *at = h.free[i];
    h.free.erase(h.free.begin() + long(i));
    return ncclSuccess;
  }
  *at = std::aligned_alloc(4096, bytes);
  h.sizes[*at] = bytes;
  return *at != nullptr ? ncclSuccess : fail(ncclUnhandledCudaError, "no memory");
}
STUB_P(MemAlloc);

STUB_API ncclResult_t ncclMemFree(void *at) {
  STUB_CALL("ncclMemFree");
  std::lock_guard<std::mutex> lock(heap().mu);
  if (at != nullptr) heap().free.push_back(at);
  return ncclSuccess;
}
STUB_P(MemFree);

STUB_API ncclResult_t ncclCommRegister(const ncclComm_t comm, void *at, size_t bytes,
                                       void **handle) {
  STUB_CALL("ncclCommRegister");
  if (!live(comm) || at == nullptr || bytes == 0) return ncclInvalidArgument;
  *handle = std::malloc(1);
  return ncclSuccess;
}
STUB_P(CommRegister);

STUB_API ncclResult_t ncclCommDeregister(const ncclComm_t, void *handle) {
  STUB_CALL("ncclCommDeregister");
  std::free(handle);
  return ncclSuccess;
}
STUB_P(CommDeregister);

// Registering a window is collective.
STUB_API ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *at, size_t bytes,
                                             ncclWindow_t *window, int) {
  STUB_CALL("ncclCommWindowRegister");
  if (!live(comm) || at == nullptr) return ncclInvalidArgument;
  *window = static_cast<ncclWindow_t>(std::malloc(1));
  const uint64_t turn = comm->take_turn();
  return create(true, [=] {
    ncclResult_t result = ncclSuccess;
    comm->in_turn(turn, [&] {
      try {
        for (const uint64_t other : all_tell(comm, uint64_t(bytes)))
          if (other != bytes) result = ncclInvalidArgument;
      } catch (const std::exception &) {
        result = comm->state = ncclRemoteError;
      }
    });
    return result;
  });
}
STUB_P(CommWindowRegister);

STUB_API ncclResult_t ncclCommWindowDeregister(ncclComm_t, ncclWindow_t window) {
  STUB_CALL("ncclCommWindowDeregister");
  std::free(window);
  return ncclSuccess;
}
STUB_P(CommWindowDeregister);

STUB_API const char *ncclGetErrorString(ncclResult_t result) {
  count("ncclGetErrorString");
  static const char *const texts[] = {"no error",
                                      "unhandled cuda error",
                                      "unhandled system error",
                                      "internal error",
                                      "invalid argument",
                                      "invalid usage",
                                      "remote process exited or there was a network error",
                                      "NCCL operation in progress"};
  return int(result) >= 0 && int(result) < 8 ? texts[int(result)] : "unknown result code";
}
STUB_P(GetErrorString);

STUB_API const char *ncclGetLastError(ncclComm_t) {
  count("ncclGetLastError");
  return last_error();
}
STUB_P(GetLastError);

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
STUB_API void ncclResetDebugInit() { count("ncclResetDebugInit"); }
STUB_P(ResetDebugInit);
#pragma GCC diagnostic pop
