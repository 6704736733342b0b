#include "one_kernels.h"

MSCCLSH_ONE_INSTANTIATE(bf16, BF16)
