#include "one_kernels.h"

MSCCLSH_ONE_INSTANTIATE(fp32, FP32)
