#include "one_kernels.h"

MSCCLSH_ONE_INSTANTIATE(uint64, Integer<uint64_t>)
