// The GPU's half of shim.h.
#ifndef MSCCLSH_SHIM_GPU_H
#define MSCCLSH_SHIM_GPU_H

#include <cstdint>
#include <cstring>

#define MSCCLSH_DEV __device__ __forceinline__
#define MSCCLSH_BOTH __host__ __device__ inline
#define MSCCLSH_UNROLL _Pragma("unroll")
// A small launch's time is much that of fetching its instructions: what is likely stands
// together, what is rare is a function of its own, called, and loops over what is mostly
// empty stay loops.
#define MSCCLSH_COLD __device__ __noinline__ inline
#define MSCCLSH_ROLLED _Pragma("unroll 1")
#define MSCCLSH_LIKELY(x) __builtin_expect(!!(x), 1)
#define MSCCLSH_UNLIKELY(x) __builtin_expect(!!(x), 0)

namespace mscclsh {

// Thread is the calling thread's place in its block.
struct Thread {
  uint32_t id, size, block;

  // sync_or is a barrier; it returns whether any thread brought true.
  MSCCLSH_DEV bool sync_or(bool v) const { return __syncthreads_or(v) != 0; }
  MSCCLSH_DEV void sync() const { __syncthreads(); }
  MSCCLSH_DEV void sync_warp() const { __syncwarp(); }

  // any is the same within the lanes that share an LL128 line.
  MSCCLSH_DEV bool any(bool v) const { return __any_sync(0xffffffffu, v) != 0; }
};

// kWarp threads run together.
constexpr uint32_t kWarp = 32;

// let_next_start allows the next launch of the stream to start while this one still runs;
// it may do what does not depend on this one, until it comes to wait_for_earlier, which
// waits until all launches before it have ended.
MSCCLSH_DEV void let_next_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
MSCCLSH_DEV void wait_for_earlier() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

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

// A warp moves LL128 lines eight at a time, a unit: each of its lanes stores 16 bytes
// of one of the first four lines and 16 bytes of one of the last four. Every eighth
// lane's second words hold the flags. What it has to carry is a vector of 16 bytes like
// all others, of which it puts one word into either line; so data is read and written in
// aligned vectors, as NCCL does it (src/device/prims_ll128.h).
constexpr int kUnitVectors = 2;  // a thread's

// unit_vector is the index in its unit of a lane's vector j, or more than all.
MSCCLSH_DEV int unit_vector(uint32_t lane, int j) {
  if (j == 0) return int(lane);
  return lane % 8 == 7 ? 64 : int(32 + lane - lane / 8);
}

// unit_line says whether a line of a unit is in use when the first n vectors are.
MSCCLSH_DEV bool unit_line(int line, int n) { return line < 4 ? 8 * line < n : 8 * line - 25 < n; }

// store_unit writes a lane's part of a unit that has n vectors. A warp's 16-byte stores
// to a line arrive together.
MSCCLSH_DEV void store_unit(unsigned char *unit, uint32_t lane, const Pair *v, uint64_t flag,
                            int n) {
  const int line = int(lane / 8);
  const bool last = lane % 8 == 7;
  if (unit_line(line, n))
    asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};" ::"l"(unit + 16 * lane), "l"(v[0].a),
                 "l"(last ? flag : v[0].b)
                 : "memory");
  if (unit_line(line + 4, n))
    asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};" ::"l"(unit + 512 + 16 * lane),
                 "l"(last ? v[0].b : v[1].a), "l"(last ? flag : v[1].b)
                 : "memory");
}

// load_unit reports whether the flags that this lane holds were there.
MSCCLSH_DEV bool load_unit(const unsigned char *unit, uint32_t lane, Pair *v, uint64_t flag,
                           int n) {
  const int line = int(lane / 8);
  Pair p{0, flag}, q{0, flag};
  if (unit_line(line, n)) p = load16_slot(unit + 16 * lane);
  if (unit_line(line + 4, n)) q = load16_slot(unit + 512 + 16 * lane);
  if (lane % 8 != 7) {
    v[0] = p;
    v[1] = q;
    return true;
  }
  v[0] = Pair{p.a, q.a};
  return p.b == flag && q.b == flag;
}

// Counters between devices.
MSCCLSH_DEV uint64_t load_acquire_system(const uint64_t *p) {
  uint64_t v;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
}
// release_system and then any number of store_relaxed_system publish what the block
// wrote before its last barrier.
MSCCLSH_DEV void release_system() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }
MSCCLSH_DEV void store_relaxed_system(uint64_t *p, uint64_t v) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
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
// numbers_of loads the number of an end's next message and, where it sends, the credit,
// which lies behind it: one load for both, as launches of few messages wait for it.
MSCCLSH_DEV Pair numbers_of(const uint64_t *seq) { return load16_slot(seq); }

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
