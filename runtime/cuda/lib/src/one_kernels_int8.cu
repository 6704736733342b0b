#include "one_kernels.h"

MSCCLSH_ONE_INSTANTIATE(int8, Integer<int8_t>)
