// What an application has of its own beside the library: streams, graphs and memory of the
// driver's virtual memory functions on a GPU. On the host a stream is a thread, and what is
// captured just runs, once.
#ifndef MSCCLSH_TEST_PROCESS_STREAMS_H
#define MSCCLSH_TEST_PROCESS_STREAMS_H

#include <cstdint>

#if defined(MSCCLSH_HOST)

#include "mscclsh_host_stream.h"

inline bool on_gpu() { return false; }

struct Stream {
  explicit Stream(int32_t) {}
  void *get() { return &stream; }
  void wait() { stream.wait(); }
  void follow(Stream &) {}  // the library's queue keeps all in order

  mscclsh::HostStream stream;
};

// Graph is what was recorded on a stream.
struct Graph {
  explicit Graph(Stream &, int = 0) {}
  void end(Stream &) {}
  int launch(Stream &) { return 0; }  // how often it ran: once already, as it was recorded
  int recorded() const { return 1; }
};

// Virtual is memory of the virtual memory functions; null on the host.
struct Virtual {
  Virtual(int32_t, int64_t) {}
  void *at = nullptr;
};

#else

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

inline bool on_gpu() { return true; }

inline void want(cudaError_t e) {
  if (e == cudaSuccess) return;
  std::printf("CUDA: %s\n", cudaGetErrorString(e));
  std::exit(1);
}

struct Stream {
  explicit Stream(int32_t device) {
    want(cudaSetDevice(device));
    want(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    want(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  }
  void *get() const { return stream; }
  void wait() { want(cudaStreamSynchronize(stream)); }
  // follow puts it behind what another one has.
  void follow(Stream &other) {
    want(cudaEventRecord(event, other.stream));
    want(cudaStreamWaitEvent(stream, event, 0));
  }

  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
};

struct Graph {
  // mode, of 3, is how much the thread may do that is not captured.
  explicit Graph(Stream &s, int mode = 0) {
    const cudaStreamCaptureMode modes[] = {cudaStreamCaptureModeThreadLocal,
                                           cudaStreamCaptureModeGlobal,
                                           cudaStreamCaptureModeRelaxed};
    want(cudaStreamBeginCapture(s.stream, modes[mode]));
  }
  void end(Stream &s) {
    cudaGraph_t graph = nullptr;
    want(cudaStreamEndCapture(s.stream, &graph));
    want(cudaGraphInstantiate(&exec, graph, 0));
    want(cudaGraphDestroy(graph));
  }
  int launch(Stream &s) {
    want(cudaGraphLaunch(exec, s.stream));
    return 1;
  }
  int recorded() const { return 0; }

  cudaGraphExec_t exec = nullptr;
};

struct Virtual {
  Virtual(int32_t device, int64_t bytes) {
    want(cudaSetDevice(device));
    CUmemAllocationProp prop = {};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = device;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    const size_t unit = size_t(2) << 20, all = (size_t(bytes) + unit - 1) / unit * unit;
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr p = 0;
    CUmemAccessDesc access = {};
    access.location = prop.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    driver<decltype(&cuMemCreate)>("cuMemCreate", &handle, all, &prop, 0ull);
    driver<decltype(&cuMemAddressReserve)>("cuMemAddressReserve", &p, all, size_t(0),
                                           CUdeviceptr(0), 0ull);
    driver<decltype(&cuMemMap)>("cuMemMap", p, all, size_t(0), handle, 0ull);
    driver<decltype(&cuMemSetAccess)>("cuMemSetAccess", p, all, &access, size_t(1));
    at = reinterpret_cast<void *>(p);
  }

  template <class F, class... Args>
  static void driver(const char *name, Args... args) {
    void *f = nullptr;
#if CUDART_VERSION >= 12050
    cudaDriverEntryPointQueryResult found;
    want(cudaGetDriverEntryPointByVersion(name, &f, 12000, cudaEnableDefault, &found));
#else
    want(cudaGetDriverEntryPoint(name, &f, cudaEnableDefault));
#endif
    const CUresult e = f ? reinterpret_cast<F>(f)(args...) : CUDA_ERROR_NOT_FOUND;
    if (e == CUDA_SUCCESS) return;
    std::printf("CUDA: %s fails with %d\n", name, int(e));
    std::exit(1);
  }

  void *at = nullptr;
};

#endif

#endif
