#include "one_kernels.h"

MSCCLSH_ONE_INSTANTIATE(fp8e4m3, FP8E4M3)
