// The NCCL underneath: where it is, and its functions that we look into. Everything else
// of its interface goes through trampolines (trampoline.h).
//
//   real().AllReduce(in, out, count, type, op, comm, stream)
//
// calls NCCL's function, and marks this thread as inside NCCL for as long: what NCCL
// then calls of its own exported functions may come back to us, because ours have the
// same names, and has to go on to NCCL as it is:
//
//   if (inside_real()) return real().AllReduce(...);
//
// A function that this NCCL lacks returns ncclInvalidUsage, after one sentence.
#ifndef MSCCLSH_NCCL_REAL_H
#define MSCCLSH_NCCL_REAL_H

#include <nccl.h>

// What headers before 2.32 don't have yet. All of it is declared as in that version.
#if NCCL_VERSION_CODE < NCCL_VERSION(2, 32, 3)
typedef struct ncclCollConfig_v23200 ncclCollConfig_t;
extern "C" {
ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId *id);
ncclResult_t pncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId *id);
ncclResult_t ncclCommGrow(ncclComm_t comm, int ranks, const ncclUniqueId *id, int rank,
                          ncclComm_t *made, ncclConfig_t *config);
ncclResult_t pncclCommGrow(ncclComm_t comm, int ranks, const ncclUniqueId *id, int rank,
                           ncclComm_t *made, ncclConfig_t *config);
ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags);
ncclResult_t pncclCommSuspend(ncclComm_t comm, int flags);
ncclResult_t ncclCommResume(ncclComm_t comm);
ncclResult_t pncclCommResume(ncclComm_t comm);
ncclResult_t ncclAllReduceConfig(const void *in, void *out, size_t count, ncclDataType_t type,
                                 ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream,
                                 const ncclCollConfig_t *config);
ncclResult_t pncclAllReduceConfig(const void *in, void *out, size_t count, ncclDataType_t type,
                                  ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream,
                                  const ncclCollConfig_t *config);
ncclResult_t ncclBroadcastConfig(const void *in, void *out, size_t count, ncclDataType_t type,
                                 int root, ncclComm_t comm, cudaStream_t stream,
                                 const ncclCollConfig_t *config);
ncclResult_t pncclBroadcastConfig(const void *in, void *out, size_t count, ncclDataType_t type,
                                  int root, ncclComm_t comm, cudaStream_t stream,
                                  const ncclCollConfig_t *config);
ncclResult_t ncclReduceConfig(const void *in, void *out, size_t count, ncclDataType_t type,
                              ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream,
                              const ncclCollConfig_t *config);
ncclResult_t pncclReduceConfig(const void *in, void *out, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream,
                               const ncclCollConfig_t *config);
ncclResult_t ncclAllGatherConfig(const void *in, void *out, size_t count, ncclDataType_t type,
                                 ncclComm_t comm, cudaStream_t stream,
                                 const ncclCollConfig_t *config);
ncclResult_t pncclAllGatherConfig(const void *in, void *out, size_t count, ncclDataType_t type,
                                  ncclComm_t comm, cudaStream_t stream,
                                  const ncclCollConfig_t *config);
ncclResult_t ncclReduceScatterConfig(const void *in, void *out, size_t count, ncclDataType_t type,
                                     ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream,
                                     const ncclCollConfig_t *config);
ncclResult_t pncclReduceScatterConfig(const void *in, void *out, size_t count, ncclDataType_t type,
                                      ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream,
                                      const ncclCollConfig_t *config);
ncclResult_t ncclAlltoAllConfig(const void *in, void *out, size_t count, ncclDataType_t type,
                                ncclComm_t comm, cudaStream_t stream,
                                const ncclCollConfig_t *config);
ncclResult_t pncclAlltoAllConfig(const void *in, void *out, size_t count, ncclDataType_t type,
                                 ncclComm_t comm, cudaStream_t stream,
                                 const ncclCollConfig_t *config);
ncclResult_t ncclGatherConfig(const void *in, void *out, size_t count, ncclDataType_t type,
                              int root, ncclComm_t comm, cudaStream_t stream,
                              const ncclCollConfig_t *config);
ncclResult_t pncclGatherConfig(const void *in, void *out, size_t count, ncclDataType_t type,
                               int root, ncclComm_t comm, cudaStream_t stream,
                               const ncclCollConfig_t *config);
ncclResult_t ncclScatterConfig(const void *in, void *out, size_t count, ncclDataType_t type,
                               int root, ncclComm_t comm, cudaStream_t stream,
                               const ncclCollConfig_t *config);
ncclResult_t pncclScatterConfig(const void *in, void *out, size_t count, ncclDataType_t type,
                                int root, ncclComm_t comm, cudaStream_t stream,
                                const ncclCollConfig_t *config);
}
#endif

namespace mscclsh {

// How many calls into NCCL this thread is in.
extern __thread int real_depth;

inline bool inside_real() { return real_depth != 0; }

// A function of NCCL, never null.
template <class F>
struct RealFunction;
template <class R, class... A>
struct RealFunction<R (*)(A...)> {
  R (*at)(A...);
  bool there;  // false: at only says that NCCL lacks it

  R operator()(A... arguments) const {
    struct Inside {
      Inside() { real_depth++; }
      ~Inside() { real_depth--; }
    } inside;
    return at(arguments...);
  }
};

// Names without "nccl". One whose result is no ncclResult_t stands in the second list.
#define MSCCLSH_REAL_FUNCTIONS(F) \
  F(MemAlloc)                     \
  F(MemFree)                      \
  F(GetVersion)                   \
  F(GetUniqueId)                  \
  F(CommInitRank)                 \
  F(CommInitRankConfig)           \
  F(CommInitRankScalable)         \
  F(CommInitAll)                  \
  F(CommFinalize)                 \
  F(CommDestroy)                  \
  F(CommAbort)                    \
  F(CommRevoke)                   \
  F(CommSplit)                    \
  F(CommShrink)                   \
  F(CommGrow)                     \
  F(CommGetUniqueId)              \
  F(CommSuspend)                  \
  F(CommResume)                   \
  F(CommGetAsyncError)            \
  F(CommCount)                    \
  F(CommCuDevice)                 \
  F(CommUserRank)                 \
  F(CommRegister)                 \
  F(CommDeregister)               \
  F(CommWindowRegister)           \
  F(CommWindowDeregister)         \
  F(RedOpCreatePreMulSum)         \
  F(RedOpDestroy)                 \
  F(Reduce)                       \
  F(Bcast)                        \
  F(Broadcast)                    \
  F(AllReduce)                    \
  F(ReduceScatter)                \
  F(AllGather)                    \
  F(AlltoAll)                     \
  F(Gather)                       \
  F(Scatter)                      \
  F(AllReduceConfig)              \
  F(BroadcastConfig)              \
  F(ReduceConfig)                 \
  F(AllGatherConfig)              \
  F(ReduceScatterConfig)          \
  F(AlltoAllConfig)               \
  F(GatherConfig)                 \
  F(ScatterConfig)                \
  F(Send)                         \
  F(Recv)                         \
  F(GroupStart)                   \
  F(GroupEnd)                     \
  F(GroupSimulateEnd)
#define MSCCLSH_REAL_TEXTS(F) \
  F(GetErrorString)           \
  F(GetLastError)

struct Real {
#define MSCCLSH_MEMBER(name) RealFunction<decltype(&nccl##name)> name;
  MSCCLSH_REAL_FUNCTIONS(MSCCLSH_MEMBER)
  MSCCLSH_REAL_TEXTS(MSCCLSH_MEMBER)
#undef MSCCLSH_MEMBER
  const char *path;  // of the library, "" if none was found: then all functions lack
};

// real looks for NCCL on the first call: the library that MSCCLSH_NCCL_LIB names, one
// that is loaded already, the next one that offers its symbols, libnccl.so.2. Any thread.
const Real &real();

// real_symbol finds any function of NCCL by its whole name, null if there is none.
void *real_symbol(const char *name);

// say_lacking tells on standard error that NCCL has no such function.
void say_lacking(const char *name);

}  // namespace mscclsh

// Makes pncclX the same function as ncclX, which this file has defined before it:
// profilers define ncclX themselves and go on to pncclX.
#define MSCCLSH_P(name) \
  extern "C"            \
      __attribute__((visibility("default"), alias("nccl" #name))) decltype(nccl##name) pnccl##name

#endif
