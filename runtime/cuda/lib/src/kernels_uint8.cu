#include "instantiate.h"

MSCCLSH_INSTANTIATE(uint8, Integer<uint8_t>)
