#include "one_kernels.h"

MSCCLSH_ONE_INSTANTIATE(fp64, FP64)
