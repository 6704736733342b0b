#include "instantiate.h"

MSCCLSH_INSTANTIATE(uint64, Integer<uint64_t>)
