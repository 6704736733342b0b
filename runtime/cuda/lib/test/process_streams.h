// A stream of the caller's: of CUDA on a GPU; on the host there are none, null is the
// queue, and what is captured just runs.
#ifndef MSCCLSH_TEST_PROCESS_STREAMS_H
#define MSCCLSH_TEST_PROCESS_STREAMS_H

#include <cstdint>

#if defined(MSCCLSH_HOST)

inline bool on_gpu() { return false; }

struct Stream {
  explicit Stream(int32_t) {}
  void *get() const { return nullptr; }
  void begin_capture() {}
  void replay() {}
};

#else

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

inline bool on_gpu() { return true; }

struct Stream {
  explicit Stream(int32_t device) {
    want(cudaSetDevice(device));
    want(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  }
  void *get() const { return stream; }
  void begin_capture() { want(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal)); }

  // replay ends the capture and launches what was recorded.
  void replay() {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    want(cudaStreamEndCapture(stream, &graph));
    want(cudaGraphInstantiate(&exec, graph, 0));
    want(cudaGraphLaunch(exec, stream));
    want(cudaStreamSynchronize(stream));
    want(cudaGraphExecDestroy(exec));
    want(cudaGraphDestroy(graph));
  }

  static void want(cudaError_t e) {
    if (e == cudaSuccess) return;
    std::printf("CUDA: %s\n", cudaGetErrorString(e));
    std::exit(1);
  }

  cudaStream_t stream = nullptr;
};

#endif

#endif
