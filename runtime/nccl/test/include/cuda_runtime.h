// What nccl.h needs of CUDA, for a build without CUDA: streams and events are opaque.
#ifndef MSCCLSH_TEST_CUDA_RUNTIME_H
#define MSCCLSH_TEST_CUDA_RUNTIME_H

#include <stddef.h>

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;

#endif
