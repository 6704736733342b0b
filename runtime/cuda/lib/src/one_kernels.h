// The table of kernels of one-sided programs. Each data type's are instantiated in a file of
// their own, one_kernels_NAME.cu.
#ifndef MSCCLSH_ONE_KERNELS_H
#define MSCCLSH_ONE_KERNELS_H

#include "kernels.h"
#include "one_interpret.h"
#include "one_quick.h"

namespace mscclsh {

// OneKernels are those of one data type; null where the build has none.
struct OneKernels {
  Kernel at[kAvg];     // of programs with one reduction
  Kernel any;          // of programs with several
  Kernel quick[kAvg];  // of short programs with one reduction
};

// one_kernels_of returns a data type's kernels, null where the build has none.
const OneKernels *one_kernels_of(DType d);

#if defined(MSCCLSH_HOST)
template <class T, Op kOp>
void one_kernel(const Thread &t, const Args &a, unsigned char *shared) {
  OneInterpreter<T, kOp>(t, a, shared).run();
}
template <class T, Op kOp>
void one_quick_kernel(const Thread &t, const Args &a, unsigned char *shared) {
  OneQuick<T, kOp>(t, a, shared).run();
}
#elif defined(__CUDACC__)
template <class T, Op kOp>
__global__ void __launch_bounds__(kMaxThreads, 1) one_kernel(const __grid_constant__ Args a) {
  extern __shared__ uint4 shared[];
  const Thread t{threadIdx.x, blockDim.x, blockIdx.x};
  OneInterpreter<T, kOp>(t, a, reinterpret_cast<unsigned char *>(shared)).run();
}
template <class T, Op kOp>
__global__ void __launch_bounds__(kMaxThreads, 1) one_quick_kernel(const __grid_constant__ Args a) {
  extern __shared__ uint4 shared[];
  const Thread t{threadIdx.x, blockDim.x, blockIdx.x};
  OneQuick<T, kOp>(t, a, reinterpret_cast<unsigned char *>(shared)).run();
}
#endif

// MSCCLSH_ONE_INSTANTIATE(name, T) defines the kernels of element type T.
#if defined(MSCCLSH_SUM_ONLY)
#define MSCCLSH_ONE_ROW(T)                                        \
  {                                                               \
    {one_kernel<T, kSum>}, nullptr, { one_quick_kernel<T, kSum> } \
  }
#else
#define MSCCLSH_ONE_ROW(T)                                                                 \
  {                                                                                        \
    {one_kernel<T, kSum>, one_kernel<T, kProd>, one_kernel<T, kMin>, one_kernel<T, kMax>}, \
        one_kernel<T, kAny>, {                                                             \
      one_quick_kernel<T, kSum>, one_quick_kernel<T, kProd>, one_quick_kernel<T, kMin>,    \
          one_quick_kernel<T, kMax>                                                        \
    }                                                                                      \
  }
#endif
#define MSCCLSH_ONE_INSTANTIATE(name, T)                    \
  namespace mscclsh {                                       \
  extern const OneKernels one_kernels_##name;               \
  const OneKernels one_kernels_##name = MSCCLSH_ONE_ROW(T); \
  }

}  // namespace mscclsh

#endif
