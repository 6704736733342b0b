#include "instantiate.h"

MSCCLSH_INSTANTIATE(int32, Integer<int32_t>)
