#include "kernels.h"

namespace mscclsh {

#define MSCCLSH_DECLARE(name, d) extern const Kernels kernels_##name;
MSCCLSH_TYPES(MSCCLSH_DECLARE)

const Kernels *kernels_of(DType d) {
  switch (d) {
#if defined(MSCCLSH_FP32_ONLY)
    case kFP32:
      return &kernels_fp32;
#else
#define MSCCLSH_CASE(name, d) \
  case d:                     \
    return &kernels_##name;
    MSCCLSH_TYPES(MSCCLSH_CASE)
#endif
    default:
      return nullptr;
  }
}

}  // namespace mscclsh
