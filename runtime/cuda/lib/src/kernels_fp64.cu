#include "instantiate.h"

MSCCLSH_INSTANTIATE(fp64, FP64)
