#include "one_kernels.h"

MSCCLSH_ONE_INSTANTIATE(fp16, FP16)
