#include "instantiate.h"

MSCCLSH_INSTANTIATE(int64, Integer<int64_t>)
