#include "one_kernels.h"

MSCCLSH_ONE_INSTANTIATE(uint32, Integer<uint32_t>)
