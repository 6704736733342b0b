#include "one_kernels.h"

MSCCLSH_ONE_INSTANTIATE(int64, Integer<int64_t>)
