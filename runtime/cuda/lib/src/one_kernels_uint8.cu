#include "one_kernels.h"

MSCCLSH_ONE_INSTANTIATE(uint8, Integer<uint8_t>)
