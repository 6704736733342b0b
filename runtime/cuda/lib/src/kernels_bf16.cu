#include "instantiate.h"

MSCCLSH_INSTANTIATE(bf16, BF16)
