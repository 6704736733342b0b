#include "instantiate.h"

MSCCLSH_INSTANTIATE(fp8e5m2, FP8E5M2)
