#include "one_kernels.h"

namespace mscclsh {

#define MSCCLSH_DECLARE(name, d) extern const OneKernels one_kernels_##name;
MSCCLSH_TYPES(MSCCLSH_DECLARE)

const OneKernels *one_kernels_of(DType d) {
  switch (d) {
#if defined(MSCCLSH_FP32_ONLY)
    case kFP32:
      return &one_kernels_fp32;
#else
#define MSCCLSH_CASE(name, d) \
  case d:                     \
    return &one_kernels_##name;
    MSCCLSH_TYPES(MSCCLSH_CASE)
#endif
    default:
      return nullptr;
  }
}

}  // namespace mscclsh
