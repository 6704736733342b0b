// The kernels of verify.h, all data types in one file: they are small.
#include "verify.h"

namespace mscclsh {

namespace {

#if defined(MSCCLSH_HOST)
template <class T>
void generate_kernel(const DataArgs &a) {
  generate_runs<T>(a, 0, 1);
}
template <class T>
void verify_kernel(const DataArgs &a) {
  verify_runs<T>(a, 0, 1);
}
#else
template <class T>
__global__ void generate_kernel(DataArgs a) {
  generate_runs<T>(a, int64_t(blockIdx.x) * blockDim.x + threadIdx.x,
                   int64_t(gridDim.x) * blockDim.x);
}
template <class T>
__global__ void verify_kernel(DataArgs a) {
  verify_runs<T>(a, int64_t(blockIdx.x) * blockDim.x + threadIdx.x,
                 int64_t(gridDim.x) * blockDim.x);
}
#endif

template <class T>
DataKernels both() {
  return {generate_kernel<T>, verify_kernel<T>};
}

}  // namespace

DataKernels data_kernels_of(DType d) {
  switch (d) {
    case kFP32:
      return both<FP32>();
    case kFP64:
      return both<FP64>();
    case kFP16:
      return both<FP16>();
    case kBF16:
      return both<BF16>();
    case kFP8E4M3:
      return both<FP8E4M3>();
    case kFP8E5M2:
      return both<FP8E5M2>();
    case kInt8:
      return both<Integer<int8_t>>();
    case kUint8:
      return both<Integer<uint8_t>>();
    case kInt32:
      return both<Integer<int32_t>>();
    case kUint32:
      return both<Integer<uint32_t>>();
    case kInt64:
      return both<Integer<int64_t>>();
    case kUint64:
      return both<Integer<uint64_t>>();
    default:
      return {nullptr, nullptr};
  }
}

}  // namespace mscclsh
