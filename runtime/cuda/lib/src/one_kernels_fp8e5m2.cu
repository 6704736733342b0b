#include "one_kernels.h"

MSCCLSH_ONE_INSTANTIATE(fp8e5m2, FP8E5M2)
