#include "one_kernels.h"

MSCCLSH_ONE_INSTANTIATE(int32, Integer<int32_t>)
