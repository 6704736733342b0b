// The GPU's half of shim.h.
#ifndef MSCCLSH_SHIM_GPU_H
#define MSCCLSH_SHIM_GPU_H

#include <cstdint>
#include <cstring>

#define MSCCLSH_DEV __device__ __forceinline__
#define MSCCLSH_UNROLL _Pragma("unroll")

namespace mscclsh {

// Thread is the calling thread's place in its block.
struct Thread {
  uint32_t id, size, block;

  // sync_or is a barrier; it returns whether any thread brought true.
  MSCCLSH_DEV bool sync_or(bool v) const { return __syncthreads_or(v) != 0; }
  MSCCLSH_DEV void sync() const { __syncthreads(); }

  // any is the same within the lanes that share an LL128 line.
  MSCCLSH_DEV bool any(bool v) const { return __any_sync(0xffffffffu, v) != 0; }
};

// kLineLanes threads share a line of 16 words of 8 bytes.
constexpr uint32_t kLineLanes = 8;

// kWarp threads run together.
constexpr uint32_t kWarp = 32;

// Words of 16 bytes, to load and store at once.
struct alignas(16) Pair {
  uint64_t a, b;
};

// Data that only barriers and posts order. asm volatile keeps the compiler from using
// the read-only cache, and from moving a load over a wait.
MSCCLSH_DEV uint64_t load8(const void *p) {
  uint64_t v;
  asm volatile("ld.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
}
MSCCLSH_DEV void store8(void *p, uint64_t v) {
  asm volatile("st.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}
MSCCLSH_DEV Pair load16(const void *p) {
  Pair v;
  asm volatile("ld.global.v2.u64 {%0, %1}, [%2];" : "=l"(v.a), "=l"(v.b) : "l"(p) : "memory");
  return v;
}
MSCCLSH_DEV void store16(void *p, Pair v) {
  asm volatile("st.global.v2.u64 [%0], {%1, %2};" ::"l"(p), "l"(v.a), "l"(v.b) : "memory");
}

// Data in slots, written by another device: past the first-level cache.
MSCCLSH_DEV Pair load16_slot(const void *p) {
  Pair v;
  asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(v.a), "=l"(v.b)
               : "l"(p)
               : "memory");
  return v;
}
MSCCLSH_DEV void store16_slot(void *p, Pair v) { store16(p, v); }

// A packet of LL: two words of 4 bytes, each with its flag, in one store.
MSCCLSH_DEV void store_packet(void *p, uint64_t v, uint32_t flag) {
  asm volatile("st.volatile.global.v4.u32 [%0], {%1, %3, %2, %3};" ::"l"(p), "r"(uint32_t(v)),
               "r"(uint32_t(v >> 32)), "r"(flag)
               : "memory");
}
// load_packet reports whether both flags were there.
MSCCLSH_DEV bool load_packet(const void *p, uint32_t flag, uint64_t *v) {
  uint32_t a, f, b, g;
  asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(a), "=r"(f), "=r"(b), "=r"(g)
               : "l"(p)
               : "memory");
  *v = uint64_t(b) << 32 | a;
  return f == flag && g == flag;
}

// A lane's part of an LL128 line: two words, the last lane's second one the flag. A
// warp's 16-byte stores to a line arrive together.
MSCCLSH_DEV void store_line(void *line, uint32_t lane, const uint64_t *v, uint64_t flag) {
  uint64_t last = lane == kLineLanes - 1 ? flag : v[1];
  asm volatile(
      "st.volatile.global.v2.u64 [%0], {%1, %2};" ::"l"(static_cast<char *>(line) + 16 * lane),
      "l"(v[0]), "l"(last)
      : "memory");
}
// load_line reports whether the flag was there, true in lanes that don't hold it.
MSCCLSH_DEV bool load_line(const void *line, uint32_t lane, uint64_t *v, uint64_t flag) {
  Pair p = load16_slot(static_cast<const char *>(line) + 16 * lane);
  v[0] = p.a;
  v[1] = p.b;
  return lane != kLineLanes - 1 || p.b == flag;
}

// Counters between devices.
MSCCLSH_DEV uint64_t load_acquire_system(const uint64_t *p) {
  uint64_t v;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
}
// store_release_system publishes what the block wrote before its last barrier.
MSCCLSH_DEV void store_release_system(uint64_t *p, uint64_t v) {
  asm volatile("fence.acq_rel.sys;\n\tst.relaxed.sys.global.u64 [%0], %1;" ::"l"(p), "l"(v)
               : "memory");
}
// A credit orders nothing but loads before it whose values are in registers already,
// so neither side needs a fence: the stores that follow depend on it.
MSCCLSH_DEV uint64_t load_credit(const uint64_t *p) {
  uint64_t v;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
}
MSCCLSH_DEV void store_credit(uint64_t *p, uint64_t v) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}

// Posts between blocks of one device.
MSCCLSH_DEV uint64_t load_acquire_device(const uint64_t *p) {
  uint64_t v;
  asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
}
MSCCLSH_DEV void store_release_device(uint64_t *p, uint64_t v) {
  asm volatile("fence.acq_rel.gpu;\n\tst.relaxed.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(v)
               : "memory");
}

MSCCLSH_DEV bool load_flag(const uint32_t *p) {
  return *static_cast<const volatile uint32_t *>(p) != 0;
}
MSCCLSH_DEV void raise_flag(uint32_t *p) { *static_cast<volatile uint32_t *>(p) = 1; }

// claim sets a word in shared memory and reports whether it was the first to.
MSCCLSH_DEV bool claim(uint32_t *p) { return atomicExch(p, 1u) == 0; }

// now is the time, ns.
MSCCLSH_DEV int64_t now() {
  int64_t t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}

// pause passes the time in a spin; kLooks is how many spins pass between looks at the
// clock.
MSCCLSH_DEV void pause(uint32_t) {}
constexpr uint32_t kLooks = 1024;

MSCCLSH_DEV float bits_to_float(uint32_t v) { return __uint_as_float(v); }
MSCCLSH_DEV uint32_t float_to_bits(float v) { return __float_as_uint(v); }
MSCCLSH_DEV double bits_to_double(uint64_t v) { return __longlong_as_double((long long)v); }
MSCCLSH_DEV uint64_t double_to_bits(double v) { return (uint64_t)__double_as_longlong(v); }

}  // namespace mscclsh

#endif
