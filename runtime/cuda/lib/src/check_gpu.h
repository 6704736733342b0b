// Errors of CUDA on their way to the caller.
#ifndef MSCCLSH_CHECK_GPU_H
#define MSCCLSH_CHECK_GPU_H

#include <cuda_runtime.h>

#include "failure.h"

namespace mscclsh {

inline void check(cudaError_t e, const char *doing) {
  if (e == cudaSuccess) return;
  const int32_t code = e == cudaErrorMemoryAllocation ? MSCCLSH_EREFUSED : MSCCLSH_EDEVICE;
  cudaGetLastError();  // so that a later call does not report it again
  throw Failure(code, format("%s: %s", doing, cudaGetErrorString(e)));
}

inline void use(int32_t id) { check(cudaSetDevice(id), "choosing the device"); }

}  // namespace mscclsh

#endif
