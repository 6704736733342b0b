#include "instantiate.h"

MSCCLSH_INSTANTIATE(fp32, FP32)
