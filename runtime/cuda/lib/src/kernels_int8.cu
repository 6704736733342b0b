#include "instantiate.h"

MSCCLSH_INSTANTIATE(int8, Integer<int8_t>)
