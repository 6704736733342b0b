// AllReduce of fp32 sums between two GPUs, written by hand: what a compiled and
// interpreted program is measured against. Both GPUs launch the same kernel with as
// many blocks; block b of one talks to block b of the other only.
//
// Launches follow each other without a word from the host. Block b keeps the number n
// of its launch in device memory (or gets it as an argument, where kArgument is true);
// flags are made of n. Staging memory has two halves, used in turn. Two suffice: a GPU
// that ends launch n-1 has the data that the other sent in it, and the other sent
// that after all of its launch n-2 had ended, with everything taken out of this half.
#ifndef YARDSTICKS_KERNELS_H
#define YARDSTICKS_KERNELS_H

#include "words.h"

constexpr int kMaxThreads = 512, kMaxBlocks = 128;

// Place is what the kernel on one GPU works on.
struct Place {
  const unsigned char *in, *peer_in;
  unsigned char *out, *peer_out;
  unsigned char *stage, *peer_stage;  // mine is written by the peer
  uint64_t *flags, *peer_flags;       // a word a block
  uint64_t *launches;                 // a word a block
  int64_t half;                       // bytes of a half of the staging memory
  int64_t bytes;                      // of the data, a multiple of 32
  int rank;                           // 0 or 1
};

// LL: everything to the peer in packets of 8 bytes, each with flags of its own.
template <bool kArgument>
__global__ void __launch_bounds__(kMaxThreads) ll(Place p, uint64_t number) {
  constexpr int kBatch = 4;
  const uint64_t n = kArgument ? number : p.launches[blockIdx.x];
  const uint32_t flag = uint32_t(n) + 1;
  unsigned char *to = p.peer_stage + (n & 1) * p.half;
  const unsigned char *from = p.stage + (n & 1) * p.half;
  const int64_t words = p.bytes / 8, stride = int64_t(gridDim.x) * blockDim.x;
  const int64_t first = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  for (int64_t w = first; w < words; w += kBatch * stride) {
    uint64_t x[kBatch];
#pragma unroll
    for (int u = 0; u < kBatch; u++)
      if (w + u * stride < words) x[u] = load8(p.in + 8 * (w + u * stride));
#pragma unroll
    for (int u = 0; u < kBatch; u++)
      if (w + u * stride < words) store_packet(to + 16 * (w + u * stride), x[u], flag);
  }
  for (int64_t w = first; w < words; w += kBatch * stride) {
    uint64_t x[kBatch], y[kBatch];
#pragma unroll
    for (int u = 0; u < kBatch; u++)
      if (w + u * stride < words) x[u] = load8(p.in + 8 * (w + u * stride));
    Patience patience;
    for (bool all = false; !all; patience.lose()) {
      all = true;
#pragma unroll
      for (int u = 0; u < kBatch; u++)
        if (w + u * stride < words) all &= load_packet(from + 16 * (w + u * stride), flag, &y[u]);
    }
#pragma unroll
    for (int u = 0; u < kBatch; u++)
      if (w + u * stride < words) store8(p.out + 8 * (w + u * stride), add(x[u], y[u]));
  }
  if (kArgument) return;
  __syncthreads();
  if (threadIdx.x == 0) p.launches[blockIdx.x] = n + 1;
}

// LL128: everything to the peer in lines of 120 bytes and a flag of 8, which eight
// lanes of a warp store at once.
template <bool kArgument>
__global__ void __launch_bounds__(kMaxThreads) ll128(Place p, uint64_t number) {
  constexpr int kBatch = 4, kLanes = 8;
  const uint64_t n = kArgument ? number : p.launches[blockIdx.x];
  const uint64_t flag = n + 1;
  unsigned char *to = p.peer_stage + (n & 1) * p.half;
  const unsigned char *from = p.stage + (n & 1) * p.half;
  const int64_t words = p.bytes / 8, lines = (words + 14) / 15;
  const int lane = threadIdx.x % kLanes;
  const bool carries_flag = lane == kLanes - 1;
  const int64_t stride = int64_t(gridDim.x) * blockDim.x / kLanes;
  // All lanes of a warp go round together: first is that of the warp's first line.
  const int64_t warp = (int64_t(blockIdx.x) * blockDim.x + threadIdx.x) / 32 * (32 / kLanes);
  const int64_t mine = warp + threadIdx.x % 32 / kLanes;
  const auto read = [&](int64_t line) {
    const int64_t w = 15 * line + 2 * lane;
    Pair v = {0, 0};
    if (w < words) v.a = load8(p.in + 8 * w);
    if (!carries_flag && w + 1 < words) v.b = load8(p.in + 8 * (w + 1));
    return v;
  };
  for (int64_t i = 0; warp + i < lines; i += kBatch * stride) {
    Pair x[kBatch];
#pragma unroll
    for (int u = 0; u < kBatch; u++)
      if (mine + i + u * stride < lines) x[u] = read(mine + i + u * stride);
#pragma unroll
    for (int u = 0; u < kBatch; u++) {
      if (carries_flag) x[u].b = flag;
      if (mine + i + u * stride < lines)
        store16_shared(to + 128 * (mine + i + u * stride) + 16 * lane, x[u]);
    }
  }
  for (int64_t i = 0; warp + i < lines; i += kBatch * stride) {
    Pair x[kBatch], y[kBatch];
#pragma unroll
    for (int u = 0; u < kBatch; u++)
      if (mine + i + u * stride < lines) x[u] = read(mine + i + u * stride);
    Patience patience;
    for (bool missing = true; __any_sync(0xffffffffu, missing); patience.lose()) {
      missing = false;
#pragma unroll
      for (int u = 0; u < kBatch; u++) {
        if (mine + i + u * stride >= lines) continue;
        y[u] = load16_shared(from + 128 * (mine + i + u * stride) + 16 * lane);
        missing |= carries_flag && y[u].b != flag;
      }
    }
#pragma unroll
    for (int u = 0; u < kBatch; u++) {
      const int64_t line = mine + i + u * stride, w = 15 * line + 2 * lane;
      if (line >= lines) continue;
      if (w < words) store8(p.out + 8 * w, add(x[u].a, y[u].a));
      if (!carries_flag && w + 1 < words) store8(p.out + 8 * (w + 1), add(x[u].b, y[u].b));
    }
  }
  if (kArgument) return;
  __syncthreads();
  if (threadIdx.x == 0) p.launches[blockIdx.x] = n + 1;
}

// Simple in one step: everything to the peer in slices, a counter behind each; the
// next slice is sent before the last one is waited for.
constexpr int64_t kSlice = 64 << 10;

__host__ __device__ inline int64_t simple_part(int64_t bytes, int64_t blocks) {
  return (bytes + 16 * blocks - 1) / (16 * blocks) * 16;
}

__global__ void __launch_bounds__(kMaxThreads) simple(Place p, uint64_t) {
  constexpr int kBatch = 4;
  const uint64_t n = p.launches[blockIdx.x];
  const int64_t part = simple_part(p.bytes, gridDim.x), begin = part * blockIdx.x;
  const int64_t end = begin + part < p.bytes ? begin + part : p.bytes;
  const int64_t slices = end > begin ? (end - begin + kSlice - 1) / kSlice : 0;
  unsigned char *to = p.peer_stage + (n & 1) * p.half;
  const unsigned char *from = p.stage + (n & 1) * p.half;
  const int64_t stride = 16 * int64_t(blockDim.x);
  for (int64_t s = 0; s <= slices; s++) {
    if (s < slices) {
      const int64_t at = begin + s * kSlice, stop = at + kSlice < end ? at + kSlice : end;
      for (int64_t i = at + 16 * threadIdx.x; i < stop; i += kBatch * stride) {
        Pair x[kBatch];
#pragma unroll
        for (int u = 0; u < kBatch; u++)
          if (i + u * stride < stop) x[u] = load16(p.in + i + u * stride);
#pragma unroll
        for (int u = 0; u < kBatch; u++)
          if (i + u * stride < stop) store16(to + i + u * stride, x[u]);
      }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      if (s < slices) store_release(&p.peer_flags[blockIdx.x], n * slices + s + 1);
      if (s > 0) wait_acquire(&p.flags[blockIdx.x], n * slices + s);
    }
    if (s == 0) continue;
    __syncthreads();
    const int64_t at = begin + (s - 1) * kSlice, stop = at + kSlice < end ? at + kSlice : end;
    for (int64_t i = at + 16 * threadIdx.x; i < stop; i += kBatch * stride) {
      Pair x[kBatch], y[kBatch];
#pragma unroll
      for (int u = 0; u < kBatch; u++) {
        if (i + u * stride >= stop) continue;
        x[u] = load16(p.in + i + u * stride);
        y[u] = load16_shared(from + i + u * stride);
      }
#pragma unroll
      for (int u = 0; u < kBatch; u++)
        if (i + u * stride < stop)
          store16(p.out + i + u * stride, Pair{add(x[u].a, y[u].a), add(x[u].b, y[u].b)});
    }
  }
  if (threadIdx.x == 0) p.launches[blockIdx.x] = n + 1;
}

// Two-shot on the peer's own buffers: each GPU adds one half of the data, loading the
// peer's part and storing to both. No GPU touches the other's memory before that one
// has entered the launch, nor leaves before the other is done with its memory.
__global__ void __launch_bounds__(kMaxThreads) two_shot(Place p, uint64_t) {
  constexpr int kBatch = 4;
  const uint64_t n = p.launches[blockIdx.x];
  if (threadIdx.x == 0) {
    store_release(&p.peer_flags[blockIdx.x], 2 * n + 1);
    wait_acquire(&p.flags[blockIdx.x], 2 * n + 1);
  }
  __syncthreads();
  const int64_t half = p.bytes / 2, end = half * (p.rank + 1);
  const int64_t stride = 16 * int64_t(gridDim.x) * blockDim.x;
  const int64_t first = half * p.rank + 16 * (int64_t(blockIdx.x) * blockDim.x + threadIdx.x);
  for (int64_t i = first; i < end; i += kBatch * stride) {
    Pair x[kBatch], y[kBatch];
#pragma unroll
    for (int u = 0; u < kBatch; u++) {
      if (i + u * stride >= end) continue;
      y[u] = load16(p.peer_in + i + u * stride);
      x[u] = load16(p.in + i + u * stride);
    }
#pragma unroll
    for (int u = 0; u < kBatch; u++) {
      if (i + u * stride >= end) continue;
      const Pair v = {add(x[u].a, y[u].a), add(x[u].b, y[u].b)};
      store16(p.peer_out + i + u * stride, v);
      store16(p.out + i + u * stride, v);
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    store_release(&p.peer_flags[blockIdx.x], 2 * n + 2);
    wait_acquire(&p.flags[blockIdx.x], 2 * n + 2);
    p.launches[blockIdx.x] = n + 1;
  }
}

#endif
