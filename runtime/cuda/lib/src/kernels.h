// The table of kernels. Each data type's kernels are instantiated in a file of their
// own, kernels_NAME.cu, so that they compile side by side and a build can leave some
// out.
#ifndef MSCCLSH_KERNELS_H
#define MSCCLSH_KERNELS_H

#include "interpret.h"
#include "quick.h"

namespace mscclsh {

// kMaxThreads bounds the threads of a block.
constexpr int kMaxThreads = 512;

#if defined(MSCCLSH_HOST)
using Kernel = void (*)(const Thread &, const Args &, unsigned char *shared);
#else
using Kernel = void (*)(Args);
#endif
using DivideKernel = void (*)(const DivideRun *, int64_t runs, Bases);

// Kernels are those of one data type; null where the build has none.
struct Kernels {
  Kernel at[kAvg][kProtocols];
  // For short programs of LL and LL128, the latter where thread blocks wait for each other.
  Kernel quick[2][kAvg][kProtocols];
  DivideKernel divide;
};

// kernels_of returns a data type's kernels, null where the build has none.
const Kernels *kernels_of(DType d);

// kernels_NAME are what the instantiating files define.
#define MSCCLSH_TYPES(X) \
  X(fp32, kFP32)         \
  X(fp64, kFP64)         \
  X(fp16, kFP16)         \
  X(bf16, kBF16)         \
  X(fp8e4m3, kFP8E4M3)   \
  X(fp8e5m2, kFP8E5M2)   \
  X(int8, kInt8)         \
  X(uint8, kUint8)       \
  X(int32, kInt32)       \
  X(uint32, kUint32)     \
  X(int64, kInt64)       \
  X(uint64, kUint64)

}  // namespace mscclsh

#endif
