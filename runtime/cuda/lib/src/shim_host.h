// The host's half of shim.h.
#ifndef MSCCLSH_SHIM_HOST_H
#define MSCCLSH_SHIM_HOST_H

#include <sched.h>
#include <time.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <mutex>

#define MSCCLSH_DEV inline
#define MSCCLSH_BOTH inline
#define MSCCLSH_UNROLL
// A small launch's time is much that of fetching its instructions: what is likely stands
// together, what is rare is a function of its own, called, and loops over what is mostly
// empty stay loops.
#define MSCCLSH_COLD inline
#define MSCCLSH_ROLLED
#define MSCCLSH_LIKELY(x) (x)
#define MSCCLSH_UNLIKELY(x) (x)

namespace mscclsh {

// Barrier is a block's barrier with an "or" over its threads.
class Barrier {
 public:
  explicit Barrier(uint32_t size) : size_(size) {}

  bool wait(bool v) {
    if (size_ == 1) return v;
    std::unique_lock<std::mutex> lock(mu_);
    any_ |= v;
    if (++here_ == size_) {
      result_ = any_;
      any_ = false;
      here_ = 0;
      turn_++;
      all_.notify_all();
      return result_;
    }
    uint64_t turn = turn_;
    all_.wait(lock, [&] { return turn_ != turn; });
    return result_;
  }

 private:
  std::mutex mu_;
  std::condition_variable all_;
  uint32_t size_, here_ = 0;
  uint64_t turn_ = 0;
  bool any_ = false, result_ = false;
};

struct Thread {
  uint32_t id, size, block;
  Barrier *barrier;

  bool sync_or(bool v) const { return barrier->wait(v); }
  void sync() const { barrier->wait(false); }
  void sync_warp() const {}
  bool any(bool v) const { return v; }
};

constexpr uint32_t kWarp = 1;

// Launches of a host device run one after the other.
inline void let_next_start() {}
inline void wait_for_earlier() {}

struct alignas(16) Pair {
  uint64_t a, b;
};

inline std::atomic<uint64_t> &word(const void *p) {
  return *reinterpret_cast<std::atomic<uint64_t> *>(const_cast<void *>(p));
}

inline uint64_t load8(const void *p) { return *static_cast<const uint64_t *>(p); }
inline void store8(void *p, uint64_t v) { *static_cast<uint64_t *>(p) = v; }
inline Pair load16(const void *p) { return *static_cast<const Pair *>(p); }
inline void store16(void *p, Pair v) { *static_cast<Pair *>(p) = v; }
inline Pair load16_slot(const void *p) { return load16(p); }

inline void store_packet(void *p, uint64_t v, uint32_t flag) {
  char *c = static_cast<char *>(p);
  word(c).store(uint64_t(flag) << 32 | uint32_t(v), std::memory_order_relaxed);
  word(c + 8).store(uint64_t(flag) << 32 | v >> 32, std::memory_order_relaxed);
}
inline bool load_packet(const void *p, uint32_t flag, uint64_t *v) {
  const char *c = static_cast<const char *>(p);
  uint64_t x = word(c).load(std::memory_order_relaxed);
  uint64_t y = word(c + 8).load(std::memory_order_relaxed);
  *v = y << 32 | uint32_t(x);
  return x >> 32 == flag && y >> 32 == flag;
}

// One thread carries a whole unit of eight lines, in order.
constexpr int kUnitVectors = 60;

inline int unit_vector(uint32_t, int j) { return j; }

inline bool unit_line(int line, int n) { return 15 * line < 2 * n; }

inline void store_unit(unsigned char *unit, uint32_t, const Pair *v, uint64_t flag, int n) {
  const uint64_t *words = &v[0].a;
  for (int l = 0; l < 8 && unit_line(l, n); l++) {
    unsigned char *line = unit + 128 * l;
    for (int i = 0; i < 15; i++)
      word(line + 8 * i).store(words[15 * l + i], std::memory_order_relaxed);
    word(line + 120).store(flag, std::memory_order_release);
  }
}
inline bool load_unit(const unsigned char *unit, uint32_t, Pair *v, uint64_t flag, int n) {
  uint64_t *words = &v[0].a;
  for (int l = 0; l < 8 && unit_line(l, n); l++) {
    const unsigned char *line = unit + 128 * l;
    if (word(line + 120).load(std::memory_order_acquire) != flag) return false;
    for (int i = 0; i < 15; i++)
      words[15 * l + i] = word(line + 8 * i).load(std::memory_order_relaxed);
  }
  return true;
}

inline uint64_t load_acquire_system(const uint64_t *p) {
  return word(p).load(std::memory_order_acquire);
}
inline void release_system() {}  // each store below is a release
inline void store_relaxed_system(uint64_t *p, uint64_t v) {
  word(p).store(v, std::memory_order_release);
}
inline uint64_t load_credit(const uint64_t *p) { return word(p).load(std::memory_order_acquire); }
inline void store_credit(uint64_t *p, uint64_t v) { word(p).store(v, std::memory_order_release); }
inline Pair numbers_of(const uint64_t *seq) { return {load8(seq), load_credit(seq + 1)}; }
inline uint64_t load_acquire_device(const uint64_t *p) { return load_acquire_system(p); }
inline void store_release_device(uint64_t *p, uint64_t v) { store_relaxed_system(p, v); }

inline std::atomic<uint32_t> &word32(const uint32_t *p) {
  return *reinterpret_cast<std::atomic<uint32_t> *>(const_cast<uint32_t *>(p));
}
inline bool load_flag(const uint32_t *p) { return word32(p).load(std::memory_order_relaxed) != 0; }
inline void raise_flag(uint32_t *p) { word32(p).store(1, std::memory_order_relaxed); }
inline bool claim(uint32_t *p) { return word32(p).exchange(1) == 0; }

inline int64_t now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t(t.tv_sec) * 1000000000 + t.tv_nsec;
}

inline void pause(uint32_t n) {
  if (n > 16) sched_yield();
}
constexpr uint32_t kLooks = 64;

inline float bits_to_float(uint32_t v) {
  float f;
  std::memcpy(&f, &v, sizeof f);
  return f;
}
inline uint32_t float_to_bits(float f) {
  uint32_t v;
  std::memcpy(&v, &f, sizeof v);
  return v;
}
inline double bits_to_double(uint64_t v) {
  double d;
  std::memcpy(&d, &v, sizeof d);
  return d;
}
inline uint64_t double_to_bits(double d) {
  uint64_t v;
  std::memcpy(&v, &d, sizeof v);
  return v;
}

}  // namespace mscclsh

#endif
