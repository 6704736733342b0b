// MSCCLSH_INSTANTIATE(name, T) defines the kernels of element type T.
#ifndef MSCCLSH_INSTANTIATE_H
#define MSCCLSH_INSTANTIATE_H

#include "kernels.h"

namespace mscclsh {

template <class T>
MSCCLSH_DEV void divide_runs(const DivideRun *runs, int64_t n, const Bases &bases, int64_t id,
                             int64_t threads) {
  using Bits = typename T::Bits;
  for (int64_t r = 0; r < n; r++) {
    Bits *at = reinterpret_cast<Bits *>(rebased(bases, runs[r].at));
    for (int64_t i = id; i < runs[r].elems; i += threads) at[i] = T::divide(at[i], runs[r].divisor);
  }
}

#if defined(MSCCLSH_HOST)
template <class T, Op kOp, Protocol kProto>
void kernel(const Thread &t, const Args &a, unsigned char *shared) {
  Interpreter<T, kOp, kProto>(t, a, shared).run();
}

template <class T, Op kOp, Protocol kProto, bool kDeps>
void quick_kernel(const Thread &t, const Args &a, unsigned char *shared) {
  Quick<T, kOp, kProto, kDeps>(t, a, shared).run();
}

template <class T>
void divide_kernel(const DivideRun *runs, int64_t n, Bases bases) {
  divide_runs<T>(runs, n, bases, 0, 1);
}
#else
template <class T, Op kOp, Protocol kProto>
__global__ void __launch_bounds__(kMaxThreads, 1) kernel(const __grid_constant__ Args a) {
  extern __shared__ uint4 shared[];
  const Thread t{threadIdx.x, blockDim.x, blockIdx.x};
  Interpreter<T, kOp, kProto>(t, a, reinterpret_cast<unsigned char *>(shared)).run();
}

template <class T, Op kOp, Protocol kProto, bool kDeps>
__global__ void __launch_bounds__(kMaxThreads, 1) quick_kernel(const __grid_constant__ Args a) {
  extern __shared__ uint4 shared[];
  const Thread t{threadIdx.x, blockDim.x, blockIdx.x};
  Quick<T, kOp, kProto, kDeps>(t, a, reinterpret_cast<unsigned char *>(shared)).run();
}

template <class T>
__global__ void divide_kernel(const DivideRun *runs, int64_t n,
                              const __grid_constant__ Bases bases) {
  divide_runs<T>(runs, n, bases, int64_t(blockIdx.x) * blockDim.x + threadIdx.x,
                 int64_t(gridDim.x) * blockDim.x);
}
#endif

#define MSCCLSH_ROW(T, op) \
  {kernel<T, op, kSimple>, kernel<T, op, kLL>, kernel<T, op, kLL128>, kernel<T, op, kDirect>}

#define MSCCLSH_QUICK(T, op) \
  {nullptr, quick_kernel<T, op, kLL, false>, quick_kernel<T, op, kLL128, false>, nullptr}

#define MSCCLSH_QUICK_DEPS(T, op) \
  {nullptr, quick_kernel<T, op, kLL, true>, quick_kernel<T, op, kLL128, true>, nullptr}

#if defined(MSCCLSH_SUM_ONLY)
#define MSCCLSH_ROWS(ROW, T) \
  {                          \
    ROW(T, kSum), {}, {}, {} \
  }
#else
#define MSCCLSH_ROWS(ROW, T) {ROW(T, kSum), ROW(T, kProd), ROW(T, kMin), ROW(T, kMax)}
#endif

#define MSCCLSH_INSTANTIATE(name, T)                                         \
  namespace mscclsh {                                                        \
  extern const Kernels kernels_##name;                                       \
  const Kernels kernels_##name = {                                           \
      MSCCLSH_ROWS(MSCCLSH_ROW, T),                                          \
      {MSCCLSH_ROWS(MSCCLSH_QUICK, T), MSCCLSH_ROWS(MSCCLSH_QUICK_DEPS, T)}, \
      divide_kernel<T>};                                                     \
  }

}  // namespace mscclsh

#endif
