// Loads, stores and flags that the kernels here are written with.
#ifndef YARDSTICKS_WORDS_H
#define YARDSTICKS_WORDS_H

#include <cstdint>

struct alignas(16) Pair {
  uint64_t a, b;
};

// Data that nobody else writes while it is read.
__device__ __forceinline__ uint64_t load8(const void *p) {
  uint64_t v;
  asm volatile("ld.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
}
__device__ __forceinline__ void store8(void *p, uint64_t v) {
  asm volatile("st.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}
__device__ __forceinline__ Pair load16(const void *p) {
  Pair v;
  asm volatile("ld.global.v2.u64 {%0, %1}, [%2];" : "=l"(v.a), "=l"(v.b) : "l"(p) : "memory");
  return v;
}
__device__ __forceinline__ void store16(void *p, Pair v) {
  asm volatile("st.global.v2.u64 [%0], {%1, %2};" ::"l"(p), "l"(v.a), "l"(v.b) : "memory");
}

// Data that the other GPU writes: past the first-level cache, whole 16 bytes at once.
__device__ __forceinline__ Pair load16_shared(const void *p) {
  Pair v;
  asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(v.a), "=l"(v.b)
               : "l"(p)
               : "memory");
  return v;
}
__device__ __forceinline__ void store16_shared(void *p, Pair v) {
  asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};" ::"l"(p), "l"(v.a), "l"(v.b) : "memory");
}

// An LL packet: two words of 4 bytes, each followed by the flag.
__device__ __forceinline__ void store_packet(void *p, uint64_t v, uint32_t flag) {
  asm volatile("st.volatile.global.v4.u32 [%0], {%1, %3, %2, %3};" ::"l"(p), "r"(uint32_t(v)),
               "r"(uint32_t(v >> 32)), "r"(flag)
               : "memory");
}
__device__ __forceinline__ bool load_packet(const void *p, uint32_t flag, uint64_t *v) {
  uint32_t a, f, b, g;
  asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(a), "=r"(f), "=r"(b), "=r"(g)
               : "l"(p)
               : "memory");
  *v = uint64_t(b) << 32 | a;
  return f == flag && g == flag;
}

// Flags between GPUs.
__device__ __forceinline__ void store_release(uint64_t *p, uint64_t v) {
  asm volatile("fence.acq_rel.sys;\n\tst.relaxed.sys.global.u64 [%0], %1;" ::"l"(p), "l"(v)
               : "memory");
}
__device__ __forceinline__ uint64_t load_acquire(const uint64_t *p) {
  uint64_t v;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
}
__device__ __forceinline__ void store_relaxed(uint64_t *p, uint64_t v) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}
__device__ __forceinline__ uint64_t load_relaxed(const uint64_t *p) {
  uint64_t v;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
}

// Patience ends a wait that has taken some ten seconds: an error, not a hang.
struct Patience {
  uint32_t n = 0;
  __device__ __forceinline__ void lose() {
    if (++n == 1u << 24) __trap();
  }
};

__device__ __forceinline__ void wait_acquire(const uint64_t *p, uint64_t at_least) {
  for (Patience patience; load_acquire(p) < at_least;) patience.lose();
}

__device__ __forceinline__ uint64_t add(uint64_t x, uint64_t y) {
  const float low = __uint_as_float(uint32_t(x)) + __uint_as_float(uint32_t(y));
  const float high = __uint_as_float(uint32_t(x >> 32)) + __uint_as_float(uint32_t(y >> 32));
  return uint64_t(__float_as_uint(high)) << 32 | __float_as_uint(low);
}

#endif
