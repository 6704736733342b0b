// Two GPUs of one process: streams, memory, and graphs that are replayed by the clock.
#ifndef YARDSTICKS_GPUS_H
#define YARDSTICKS_GPUS_H

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

// check ends the program when a call fails: 3, this machine can't.
inline void check(cudaError_t e, const char *doing) {
  if (e == cudaSuccess) return;
  std::fprintf(stderr, "yardsticks: %s: %s\n", doing, cudaGetErrorString(e));
  std::exit(3);
}

// Spread is what came of some repetitions, us a launch.
struct Spread {
  double median, least, most;
};

class Gpus {
 public:
  // The first two GPUs, or those that a and b name, reach each other's memory.
  Gpus(int a, int b) : ids_{a, b} {
    for (int r = 0; r < 2; r++) {
      use(r);
      int can = 0;
      check(cudaDeviceCanAccessPeer(&can, ids_[r], ids_[1 - r]), "asking for peer access");
      if (!can) {
        std::fprintf(stderr, "yardsticks: GPU %d can't reach the memory of GPU %d\n", ids_[r],
                     ids_[1 - r]);
        std::exit(3);
      }
      check(cudaDeviceEnablePeerAccess(ids_[1 - r], 0), "opening peer access");
      check(cudaStreamCreateWithFlags(&streams[r], cudaStreamNonBlocking), "making a stream");
      check(cudaEventCreate(&begin_[r]), "making an event");
      check(cudaEventCreate(&end_[r]), "making an event");
    }
  }

  void use(int r) const { check(cudaSetDevice(ids_[r]), "choosing a GPU"); }

  // alloc makes memory of GPU r, all zero.
  unsigned char *alloc(int r, int64_t bytes) {
    use(r);
    void *p = nullptr;
    check(cudaMalloc(&p, size_t(bytes)), "allocating");
    clear(r, p, bytes);
    return static_cast<unsigned char *>(p);
  }
  void clear(int r, void *p, int64_t bytes) {
    use(r);
    check(cudaMemsetAsync(p, 0, size_t(bytes), streams[r]), "clearing");
    check(cudaStreamSynchronize(streams[r]), "clearing");
  }
  void release(int r, void *p) {
    use(r);
    check(cudaFree(p), "freeing");
  }

  void sync() {
    for (int r = 0; r < 2; r++) {
      use(r);
      check(cudaStreamSynchronize(streams[r]), "waiting for a GPU");
    }
  }

  // time captures launches calls of enqueue(r, k) into one graph a GPU, replays both
  // together, and returns how long a launch took on the GPU that took longest.
  Spread time(int launches, int repetitions, const std::function<void(int r, int k)> &enqueue) {
    cudaGraphExec_t graphs[2];
    for (int r = 0; r < 2; r++) {
      use(r);
      check(cudaStreamBeginCapture(streams[r], cudaStreamCaptureModeRelaxed), "capturing");
      for (int k = 0; k < launches; k++) enqueue(r, k);
      cudaGraph_t graph;
      check(cudaStreamEndCapture(streams[r], &graph), "capturing");
      check(cudaGraphInstantiateWithFlags(&graphs[r], graph, 0), "making a graph");
      check(cudaGraphDestroy(graph), "freeing a graph");
      check(cudaGraphUpload(graphs[r], streams[r]), "loading a graph");
    }
    constexpr int kWarmup = 5;
    std::vector<double> times;
    for (int i = 0; i < kWarmup + repetitions; i++) {
      const double us = replay(graphs) / launches;
      if (i >= kWarmup) times.push_back(us);
    }
    for (int r = 0; r < 2; r++) {
      use(r);
      check(cudaGraphExecDestroy(graphs[r]), "freeing a graph");
    }
    std::sort(times.begin(), times.end());
    const size_t n = times.size();
    return {(times[(n - 1) / 2] + times[n / 2]) / 2, times.front(), times.back()};
  }

  cudaStream_t streams[2] = {};

 private:
  double replay(cudaGraphExec_t graphs[2]) {
    sync();
    for (int r = 0; r < 2; r++) {
      use(r);
      check(cudaEventRecord(begin_[r], streams[r]), "recording an event");
    }
    for (int r = 0; r < 2; r++) {
      use(r);
      check(cudaGraphLaunch(graphs[r], streams[r]), "launching a graph");
    }
    for (int r = 0; r < 2; r++) {
      use(r);
      check(cudaEventRecord(end_[r], streams[r]), "recording an event");
    }
    sync();
    float longest = 0;
    for (int r = 0; r < 2; r++) {
      float ms = 0;
      use(r);
      check(cudaEventElapsedTime(&ms, begin_[r], end_[r]), "reading a clock");
      longest = std::max(longest, ms);
    }
    return double(longest) * 1e3;
  }

  int ids_[2];
  cudaEvent_t begin_[2] = {}, end_[2] = {};
};

// launch starts a kernel on a stream with attributes: cooperative or, from compute
// capability 9.0 on, allowed to start before the kernel before it has ended.
struct How {
  int blocks, threads;
  size_t shared;
  bool cooperative, early;
};

template <class... Params>
void launch(void (*kernel)(Params...), const How &how, cudaStream_t stream, Params... params) {
  cudaLaunchAttribute attrs[2];
  cudaLaunchConfig_t c = {};
  c.gridDim = dim3(unsigned(how.blocks));
  c.blockDim = dim3(unsigned(how.threads));
  c.dynamicSmemBytes = how.shared;
  c.stream = stream;
  c.attrs = attrs;
  if (how.cooperative) {
    attrs[c.numAttrs].id = cudaLaunchAttributeCooperative;
    attrs[c.numAttrs++].val.cooperative = 1;
  }
  if (how.early) {
    attrs[c.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attrs[c.numAttrs++].val.programmaticStreamSerializationAllowed = 1;
  }
  void *list[] = {&params...};
  check(cudaLaunchKernelExC(&c, reinterpret_cast<const void *>(kernel), list),
        "launching a kernel");
}

#endif
