#include "instantiate.h"

MSCCLSH_INSTANTIATE(fp16, FP16)
