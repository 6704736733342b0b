// What one-sided programs need of shim.h beside the rest: counters that several blocks
// count, and packets of 4 bytes.
#ifndef MSCCLSH_ONE_SHIM_H
#define MSCCLSH_ONE_SHIM_H

#include "shim.h"

namespace mscclsh {

#if defined(__CUDACC__)

// add_relaxed_device counts and returns what was there before.
MSCCLSH_DEV uint64_t add_relaxed_device(uint64_t *p, uint64_t v) {
  uint64_t was;
  asm volatile("atom.relaxed.gpu.global.add.u64 %0, [%1], %2;"
               : "=l"(was)
               : "l"(p), "l"(v)
               : "memory");
  return was;
}
// These publish what the block did before its last barrier, to the device or to all.
MSCCLSH_DEV uint64_t add_release_device(uint64_t *p, uint64_t v) {
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
  return add_relaxed_device(p, v);
}
MSCCLSH_DEV void count_release_device(uint64_t *p, uint64_t v) {
  asm volatile("fence.acq_rel.gpu;\n\tred.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(p), "l"(v)
               : "memory");
}
// count_relaxed_system counts at another device; release_system before it publishes.
MSCCLSH_DEV void count_relaxed_system(uint64_t *p, uint64_t v) {
  asm volatile("red.relaxed.sys.global.add.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}

// A packet of 4 bytes and its flag, in one store.
MSCCLSH_DEV void store_packet4(void *p, uint32_t v, uint32_t flag) {
  asm volatile("st.volatile.global.v2.u32 [%0], {%1, %2};" ::"l"(p), "r"(v), "r"(flag) : "memory");
}
MSCCLSH_DEV bool load_packet4(const void *p, uint32_t flag, uint64_t *v) {
  uint32_t a, f;
  asm volatile("ld.volatile.global.v2.u32 {%0, %1}, [%2];" : "=r"(a), "=r"(f) : "l"(p) : "memory");
  *v = a;
  return f == flag;
}

#else

inline uint64_t add_relaxed_device(uint64_t *p, uint64_t v) {
  return word(p).fetch_add(v, std::memory_order_relaxed);
}
inline uint64_t add_release_device(uint64_t *p, uint64_t v) {
  return word(p).fetch_add(v, std::memory_order_acq_rel);
}
inline void count_release_device(uint64_t *p, uint64_t v) { add_release_device(p, v); }
inline void count_relaxed_system(uint64_t *p, uint64_t v) { add_release_device(p, v); }

inline void store_packet4(void *p, uint32_t v, uint32_t flag) {
  word(p).store(uint64_t(flag) << 32 | v, std::memory_order_relaxed);
}
inline bool load_packet4(const void *p, uint32_t flag, uint64_t *v) {
  const uint64_t w = word(p).load(std::memory_order_relaxed);
  *v = uint32_t(w);
  return uint32_t(w >> 32) == flag;
}

#endif

}  // namespace mscclsh

#endif
