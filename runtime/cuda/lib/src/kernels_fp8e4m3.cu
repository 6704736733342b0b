#include "instantiate.h"

MSCCLSH_INSTANTIATE(fp8e4m3, FP8E4M3)
