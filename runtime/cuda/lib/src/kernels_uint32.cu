#include "instantiate.h"

MSCCLSH_INSTANTIATE(uint32, Integer<uint32_t>)
