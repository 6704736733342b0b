// The collectives, sends and receives, and groups.
#include "api.h"
#include "log.h"

namespace mscclsh::nccl {

namespace {

// early refuses what comes before a communicator that doesn't block is ready: NCCL may be,
// and would take it, and other ranks may have a program for it by then. It returns whether
// it has. The same holds for what comes before calls that wait for NCCL.
bool early(Rank *rank, ncclResult_t *result) {
  const Phase phase = rank->phase.load(std::memory_order_acquire);
  bool behind = phase == Phase::kSettingUp;
  if (phase == Phase::kReady && !rank->config.blocking) {
    std::lock_guard<std::mutex> lock(rank->later_mu);
    behind = !rank->later.empty();
  }
  if (!behind) return false;
  last_error() =
      "the communicator is used before ncclCommGetAsyncError has told ncclSuccess: wait for that";
  *result = ncclInvalidArgument;
  return true;
}

// waits_for_nccl is whether NCCL is at work on an earlier call, so that it will refuse
// this one.
bool waits_for_nccl(const Rank &rank) {
  ncclResult_t state = ncclSuccess;
  return !rank.config.blocking && real().CommGetAsyncError(rank.comm, &state) == ncclSuccess &&
         state == ncclInProgress;
}

// take carries a collective call of a rank out, or notes it in a group, if a program serves
// it; false: it is NCCL's.
bool take(Rank *rank, const Request &r, ncclResult_t *result) {
  if (early(rank, result)) return true;
  if (rank->unanswered()) {
    last_error() = rank->error();
    *result = rank->broken;
    return true;
  }
  if (!rank->ready() || rank->finalized || waits_for_nccl(*rank)) return false;
  const int32_t entry = entry_of(rank, r);
  if (entry < 0) return false;
  *result = ncclSuccess;
  if (group().open())
    group().add(rank, r, entry);
  else
    *result = launch(rank, r, entry);
  return true;
}

// holds is whether a call waits for the end of its group, because all ranks' may be in it.
bool holds(const Rank &rank) {
  if (!group().open() || !rank.ready() || rank.finalized) return false;
  if (!rank.opens_windows || !rank.engine->one_process()) return false;
  // What comes behind a call that is held is held too.
  return !rank.engine->apart || group().holds(rank.comm);
}

// noted counts a call that was given to NCCL or a program, and returns its result.
ncclResult_t noted(Rank *rank, ncclResult_t result) {
  if (rank == nullptr) return result;
  rank->calls_made++;
  if (result != ncclSuccess && result != ncclInProgress && rank->ready())
    rank->engine->apart = true;
  return result;
}

// at_once gives NCCL a call that can't be held, and so nothing that comes before it either.
template <class F>
ncclResult_t at_once(ncclComm_t comm, F real_call) {
  return guarded([&] {
    Rank *const rank = passing() ? nullptr : find(comm);
    if (rank == nullptr) return real_call();
    const ncclResult_t before = group().open() ? group().deliver(comm) : ncclSuccess;
    return noted(rank, before != ncclSuccess ? before : real_call());
  });
}

template <class F>
ncclResult_t collective(const Request &r, F real_call) {
  return guarded([&] {
    Rank *const rank = passing() ? nullptr : find(r.comm);
    if (rank == nullptr) return real_call();
    // An operation of the caller's may be destroyed before its group ends.
    if (r.op < 0 && holds(*rank)) return at_once(r.comm, real_call);
    if (holds(*rank)) {
      group().add(Held{r.comm, r, rank->calls_made++, real_call});
      return ncclSuccess;
    }
    ncclResult_t result;
    return noted(rank, take(rank, r, &result) ? result : real_call());
  });
}

// With a configuration of its own a call is NCCL's, on all ranks: it is the same on each. It
// can't be held, as the configuration is the caller's.
template <class F>
ncclResult_t configured(const Request &r, const ncclCollConfig_t *config, F real_call) {
  return config == nullptr ? collective(r, real_call) : at_once(r.comm, real_call);
}

// message is a send or a receive. In a group it may become part of an alltoall.
template <class F>
ncclResult_t message(const Message &m, F real_call) {
  return guarded([&] {
    if (passing()) return real_call();
    Rank *const rank = find(m.comm);
    ncclResult_t refused;
    if (rank != nullptr && early(rank, &refused)) return refused;
    if (rank == nullptr || !group().open()) return real_call();
    group().pass_by(m.comm);
    if (!options().group_alltoall || !rank->ready() || rank->finalized ||
        !rank->engine->serves(MSCCLSH_ALLTOALL))
      return real_call();
    group().add(m);
    return ncclSuccess;
  });
}

}  // namespace

}  // namespace mscclsh::nccl

using namespace mscclsh::nccl;
using mscclsh::real;

MSCCLSH_EXPORT ncclResult_t ncclAllReduce(const void *in, void *out, size_t count,
                                          ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                          cudaStream_t stream) {
  return collective({MSCCLSH_ALLREDUCE, in, out, count, dtype_of(type), op_of(op), 0, comm, stream},
                    [=] { return real().AllReduce(in, out, count, type, op, comm, stream); });
}
MSCCLSH_P(AllReduce);

MSCCLSH_EXPORT ncclResult_t ncclAllGather(const void *in, void *out, size_t count,
                                          ncclDataType_t type, ncclComm_t comm,
                                          cudaStream_t stream) {
  return collective({MSCCLSH_ALLGATHER, in, out, count, dtype_of(type), 0, 0, comm, stream},
                    [=] { return real().AllGather(in, out, count, type, comm, stream); });
}
MSCCLSH_P(AllGather);

MSCCLSH_EXPORT ncclResult_t ncclReduceScatter(const void *in, void *out, size_t count,
                                              ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                              cudaStream_t stream) {
  return collective(
      {MSCCLSH_REDUCESCATTER, in, out, count, dtype_of(type), op_of(op), 0, comm, stream},
      [=] { return real().ReduceScatter(in, out, count, type, op, comm, stream); });
}
MSCCLSH_P(ReduceScatter);

MSCCLSH_EXPORT ncclResult_t ncclBroadcast(const void *in, void *out, size_t count,
                                          ncclDataType_t type, int root, ncclComm_t comm,
                                          cudaStream_t stream) {
  return collective({MSCCLSH_BROADCAST, in, out, count, dtype_of(type), 0, root, comm, stream},
                    [=] { return real().Broadcast(in, out, count, type, root, comm, stream); });
}
MSCCLSH_P(Broadcast);

MSCCLSH_EXPORT ncclResult_t ncclBcast(void *at, size_t count, ncclDataType_t type, int root,
                                      ncclComm_t comm, cudaStream_t stream) {
  return collective({MSCCLSH_BROADCAST, at, at, count, dtype_of(type), 0, root, comm, stream},
                    [=] { return real().Bcast(at, count, type, root, comm, stream); });
}
MSCCLSH_P(Bcast);

MSCCLSH_EXPORT ncclResult_t ncclReduce(const void *in, void *out, size_t count, ncclDataType_t type,
                                       ncclRedOp_t op, int root, ncclComm_t comm,
                                       cudaStream_t stream) {
  return collective(
      {MSCCLSH_REDUCE_TO_ROOT, in, out, count, dtype_of(type), op_of(op), root, comm, stream},
      [=] { return real().Reduce(in, out, count, type, op, root, comm, stream); });
}
MSCCLSH_P(Reduce);

MSCCLSH_EXPORT ncclResult_t ncclAlltoAll(const void *in, void *out, size_t count,
                                         ncclDataType_t type, ncclComm_t comm,
                                         cudaStream_t stream) {
  return collective({MSCCLSH_ALLTOALL, in, out, count, dtype_of(type), 0, 0, comm, stream},
                    [=] { return real().AlltoAll(in, out, count, type, comm, stream); });
}
MSCCLSH_P(AlltoAll);

MSCCLSH_EXPORT ncclResult_t ncclGather(const void *in, void *out, size_t count, ncclDataType_t type,
                                       int root, ncclComm_t comm, cudaStream_t stream) {
  return collective({MSCCLSH_GATHER, in, out, count, dtype_of(type), 0, root, comm, stream},
                    [=] { return real().Gather(in, out, count, type, root, comm, stream); });
}
MSCCLSH_P(Gather);

MSCCLSH_EXPORT ncclResult_t ncclScatter(const void *in, void *out, size_t count,
                                        ncclDataType_t type, int root, ncclComm_t comm,
                                        cudaStream_t stream) {
  return collective({MSCCLSH_SCATTER, in, out, count, dtype_of(type), 0, root, comm, stream},
                    [=] { return real().Scatter(in, out, count, type, root, comm, stream); });
}
MSCCLSH_P(Scatter);

MSCCLSH_EXPORT ncclResult_t ncclAllReduceConfig(const void *in, void *out, size_t count,
                                                ncclDataType_t type, ncclRedOp_t op,
                                                ncclComm_t comm, cudaStream_t stream,
                                                const ncclCollConfig_t *config) {
  return configured(
      {MSCCLSH_ALLREDUCE, in, out, count, dtype_of(type), op_of(op), 0, comm, stream}, config,
      [=] { return real().AllReduceConfig(in, out, count, type, op, comm, stream, config); });
}
MSCCLSH_P(AllReduceConfig);

MSCCLSH_EXPORT ncclResult_t ncclAllGatherConfig(const void *in, void *out, size_t count,
                                                ncclDataType_t type, ncclComm_t comm,
                                                cudaStream_t stream,
                                                const ncclCollConfig_t *config) {
  return configured(
      {MSCCLSH_ALLGATHER, in, out, count, dtype_of(type), 0, 0, comm, stream}, config,
      [=] { return real().AllGatherConfig(in, out, count, type, comm, stream, config); });
}
MSCCLSH_P(AllGatherConfig);

MSCCLSH_EXPORT ncclResult_t ncclReduceScatterConfig(const void *in, void *out, size_t count,
                                                    ncclDataType_t type, ncclRedOp_t op,
                                                    ncclComm_t comm, cudaStream_t stream,
                                                    const ncclCollConfig_t *config) {
  return configured(
      {MSCCLSH_REDUCESCATTER, in, out, count, dtype_of(type), op_of(op), 0, comm, stream}, config,
      [=] { return real().ReduceScatterConfig(in, out, count, type, op, comm, stream, config); });
}
MSCCLSH_P(ReduceScatterConfig);

MSCCLSH_EXPORT ncclResult_t ncclBroadcastConfig(const void *in, void *out, size_t count,
                                                ncclDataType_t type, int root, ncclComm_t comm,
                                                cudaStream_t stream,
                                                const ncclCollConfig_t *config) {
  return configured(
      {MSCCLSH_BROADCAST, in, out, count, dtype_of(type), 0, root, comm, stream}, config,
      [=] { return real().BroadcastConfig(in, out, count, type, root, comm, stream, config); });
}
MSCCLSH_P(BroadcastConfig);

MSCCLSH_EXPORT ncclResult_t ncclReduceConfig(const void *in, void *out, size_t count,
                                             ncclDataType_t type, ncclRedOp_t op, int root,
                                             ncclComm_t comm, cudaStream_t stream,
                                             const ncclCollConfig_t *config) {
  return configured(
      {MSCCLSH_REDUCE_TO_ROOT, in, out, count, dtype_of(type), op_of(op), root, comm, stream},
      config,
      [=] { return real().ReduceConfig(in, out, count, type, op, root, comm, stream, config); });
}
MSCCLSH_P(ReduceConfig);

MSCCLSH_EXPORT ncclResult_t ncclAlltoAllConfig(const void *in, void *out, size_t count,
                                               ncclDataType_t type, ncclComm_t comm,
                                               cudaStream_t stream,
                                               const ncclCollConfig_t *config) {
  return configured(
      {MSCCLSH_ALLTOALL, in, out, count, dtype_of(type), 0, 0, comm, stream}, config,
      [=] { return real().AlltoAllConfig(in, out, count, type, comm, stream, config); });
}
MSCCLSH_P(AlltoAllConfig);

MSCCLSH_EXPORT ncclResult_t ncclGatherConfig(const void *in, void *out, size_t count,
                                             ncclDataType_t type, int root, ncclComm_t comm,
                                             cudaStream_t stream, const ncclCollConfig_t *config) {
  return configured(
      {MSCCLSH_GATHER, in, out, count, dtype_of(type), 0, root, comm, stream}, config,
      [=] { return real().GatherConfig(in, out, count, type, root, comm, stream, config); });
}
MSCCLSH_P(GatherConfig);

MSCCLSH_EXPORT ncclResult_t ncclScatterConfig(const void *in, void *out, size_t count,
                                              ncclDataType_t type, int root, ncclComm_t comm,
                                              cudaStream_t stream, const ncclCollConfig_t *config) {
  return configured(
      {MSCCLSH_SCATTER, in, out, count, dtype_of(type), 0, root, comm, stream}, config,
      [=] { return real().ScatterConfig(in, out, count, type, root, comm, stream, config); });
}
MSCCLSH_P(ScatterConfig);

MSCCLSH_EXPORT ncclResult_t ncclSend(const void *in, size_t count, ncclDataType_t type, int peer,
                                     ncclComm_t comm, cudaStream_t stream) {
  return message({true, in, nullptr, count, type, peer, comm, stream},
                 [=] { return real().Send(in, count, type, peer, comm, stream); });
}
MSCCLSH_P(Send);

MSCCLSH_EXPORT ncclResult_t ncclRecv(void *out, size_t count, ncclDataType_t type, int peer,
                                     ncclComm_t comm, cudaStream_t stream) {
  return message({false, nullptr, out, count, type, peer, comm, stream},
                 [=] { return real().Recv(out, count, type, peer, comm, stream); });
}
MSCCLSH_P(Recv);

MSCCLSH_EXPORT ncclResult_t ncclGroupStart() {
  if (passing()) return real().GroupStart();
  return guarded([] { return group().start(); });
}
MSCCLSH_P(GroupStart);

MSCCLSH_EXPORT ncclResult_t ncclGroupEnd() {
  if (passing()) return real().GroupEnd();
  return guarded([] { return group().end(); });
}
MSCCLSH_P(GroupEnd);

MSCCLSH_EXPORT ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t *info) {
  if (passing()) return real().GroupSimulateEnd(info);
  return guarded([&] { return group().simulate(info); });
}
MSCCLSH_P(GroupSimulateEnd);
