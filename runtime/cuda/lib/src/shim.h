// The one difference between a GPU and a CPU: who the threads are, how they meet and
// how they order memory. Everything above this file is the same source for both.
//
// On the host a block's threads are real threads, a word that others may look at is
// an atomic, and orders are those of C++ at least as strong as the GPU's.
#ifndef MSCCLSH_SHIM_H
#define MSCCLSH_SHIM_H

#if defined(__CUDACC__)
#include "shim_gpu.h"
#else
#include "shim_host.h"
#endif

#endif
