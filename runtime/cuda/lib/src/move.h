// Moving one message: from memory, from a slot, or both, to memory, a slot, or both.
#ifndef MSCCLSH_MOVE_H
#define MSCCLSH_MOVE_H

#include "number.h"
#include "tables.h"

namespace mscclsh {

// Spin is one wait's patience.
struct Spin {
  uint32_t n = 0;
  int32_t cause = 0;  // as in Record, once it has run out
  int64_t since = 0;

  MSCCLSH_DEV bool go_on(const Args &a) {
    pause(++n);
    return n % kLooks != 0 || look(a);
  }

 private:
  MSCCLSH_DEV bool look(const Args &a) {
    int64_t t = now();
    if (since == 0) since = t;
    if (load_flag(a.dead) || load_flag(a.abort)) {
      cause = 2;
    } else if (t - since > a.watchdog_ns) {
      cause = 1;
    }
    return cause == 0;
  }
};

// Message is what a step does once: result = x, or x op y, into memory and a slot.
struct Message {
  unsigned char *x;         // null: the message received
  unsigned char *y;         // null: no reduction
  unsigned char *dst;       // null: not written to memory
  unsigned char *in, *out;  // slots, null where none is
  uint64_t in_flag, out_flag;
  int64_t bytes;
  uint32_t clean;  // lines of the output slot to write at least
};

// load_part and store_part are for words that are not aligned or not whole: element
// by element.
template <class Bits>
MSCCLSH_DEV uint64_t load_part(const unsigned char *p, int64_t bytes) {
  constexpr int kElems = 8 / sizeof(Bits);
  union {
    uint64_t word;
    Bits elems[kElems];
  } v;
  v.word = 0;
  MSCCLSH_UNROLL
  for (int i = 0; i < kElems; i++)
    if (int64_t(i * sizeof(Bits)) < bytes)
      v.elems[i] = *reinterpret_cast<const volatile Bits *>(p + i * sizeof(Bits));
  return v.word;
}

template <class Bits>
MSCCLSH_DEV void store_part(unsigned char *p, int64_t bytes, uint64_t word) {
  constexpr int kElems = 8 / sizeof(Bits);
  union {
    uint64_t word;
    Bits elems[kElems];
  } v;
  v.word = word;
  MSCCLSH_UNROLL
  for (int i = 0; i < kElems; i++)
    if (int64_t(i * sizeof(Bits)) < bytes)
      *reinterpret_cast<volatile Bits *>(p + i * sizeof(Bits)) = v.elems[i];
}

// Mover moves messages of elements T with reduction kOp.
template <class T, Op kOp>
struct Mover {
  using Bits = typename T::Bits;
  const Thread &t;
  const Args &a;

  MSCCLSH_DEV static bool aligned(const Message &m, uintptr_t to) {
    uintptr_t all = reinterpret_cast<uintptr_t>(m.x) | reinterpret_cast<uintptr_t>(m.y) |
                    reinterpret_cast<uintptr_t>(m.dst);
    return (all & (to - 1)) == 0;
  }

  // get and put are word k of a range; fast is whether its start is aligned.
  MSCCLSH_DEV static uint64_t get(const unsigned char *p, int64_t k, int64_t bytes, bool fast) {
    int64_t left = bytes - 8 * k;
    return fast && left >= 8 ? load8(p + 8 * k) : load_part<Bits>(p + 8 * k, left);
  }
  MSCCLSH_DEV static void put(unsigned char *p, int64_t k, int64_t bytes, bool fast, uint64_t v) {
    int64_t left = bytes - 8 * k;
    if (fast && left >= 8)
      store8(p + 8 * k, v);
    else
      store_part<Bits>(p + 8 * k, left, v);
  }

  // ll moves 8 bytes a packet. It returns whether the message came.
  MSCCLSH_DEV bool ll(const Message &m, Spin &spin) const {
    constexpr int kBatch = 4;
    const bool fast = aligned(m, 8);
    const int64_t words = (m.bytes + 7) / 8, stride = t.size;
    for (int64_t w = t.id; w < words; w += kBatch * stride) {
      uint64_t x[kBatch] = {}, y[kBatch] = {};
      MSCCLSH_UNROLL
      for (int u = 0; u < kBatch; u++) {
        int64_t k = w + u * stride;
        if (k < words && m.x) x[u] = get(m.x, k, m.bytes, fast);
        if (k < words && m.y) y[u] = get(m.y, k, m.bytes, fast);
      }
      if (m.in) {
        for (bool there = false; !there;) {
          there = true;
          MSCCLSH_UNROLL
          for (int u = 0; u < kBatch; u++) {
            int64_t k = w + u * stride;
            if (k < words) there &= load_packet(m.in + 16 * k, uint32_t(m.in_flag), &x[u]);
          }
          if (!there && !spin.go_on(a)) return false;
        }
      }
      MSCCLSH_UNROLL
      for (int u = 0; u < kBatch; u++) {
        int64_t k = w + u * stride;
        if (k >= words) break;
        uint64_t v = m.y ? combine<T, kOp>(x[u], y[u]) : x[u];
        if (m.out) store_packet(m.out + 16 * k, v, uint32_t(m.out_flag));
        if (m.dst) put(m.dst, k, m.bytes, fast, v);
      }
    }
    for (int64_t k = words + t.id; k < int64_t(m.clean); k += stride)
      store_packet(m.out + 16 * k, 0, uint32_t(m.out_flag));
    return true;
  }

  // ll128 moves 120 bytes a line. All lanes of a warp stay together.
  MSCCLSH_DEV bool ll128(const Message &m, Spin &spin) const {
    constexpr int kWords = 16 / kLineLanes;
    const bool fast = aligned(m, 8);
    const uint32_t lane = t.id % kLineLanes;
    const int mine = lane == kLineLanes - 1 ? kWords - 1 : kWords;
    const int64_t lines = (m.bytes + 119) / 120, words = (m.bytes + 7) / 8;
    const int64_t all = lines < int64_t(m.clean) ? int64_t(m.clean) : lines;
    const int64_t in_warp = t.id % kWarp / kLineLanes;
    for (int64_t first = t.id / kWarp * (kWarp / kLineLanes); first < all;
         first += t.size / kLineLanes) {
      const int64_t line = first + in_warp, k = line * 15 + lane * kWords;
      const int have = line < lines ? mine : 0;
      uint64_t x[kWords] = {}, y[kWords] = {};
      MSCCLSH_UNROLL
      for (int j = 0; j < kWords; j++) {
        if (j < have && k + j < words && m.x) x[j] = get(m.x, k + j, m.bytes, fast);
        if (j < have && k + j < words && m.y) y[j] = get(m.y, k + j, m.bytes, fast);
      }
      if (m.in) {
        for (;;) {
          bool missing = have > 0 && !load_line(m.in + 128 * line, lane, x, m.in_flag);
          if (!t.any(missing)) break;
          if (t.any(!spin.go_on(a))) {
            spin.cause = t.any(spin.cause == 1) ? 1 : 2;
            return false;
          }
        }
      }
      MSCCLSH_UNROLL
      for (int j = 0; j < kWords; j++)
        if (m.y) x[j] = combine<T, kOp>(x[j], y[j]);
      if (m.out && line < all) store_line(m.out + 128 * line, lane, x, m.out_flag);
      MSCCLSH_UNROLL
      for (int j = 0; j < kWords; j++)
        if (m.dst && j < have && k + j < words) put(m.dst, k + j, m.bytes, fast, x[j]);
    }
    return true;
  }

  MSCCLSH_DEV static Pair get16(const unsigned char *p, int64_t k, int64_t bytes, bool fast) {
    if (fast && bytes >= 16 * k + 16) return load16(p + 16 * k);
    return Pair{get(p, 2 * k, bytes, false), get(p, 2 * k + 1, bytes, false)};
  }
  MSCCLSH_DEV static void put16(unsigned char *p, int64_t k, int64_t bytes, bool fast, Pair v) {
    if (fast && bytes >= 16 * k + 16) {
      store16(p + 16 * k, v);
    } else {
      put(p, 2 * k, bytes, false, v.a);
      put(p, 2 * k + 1, bytes, false, v.b);
    }
  }

  // plain moves between memory and slots of plain bytes, 16 at a time. Nothing in it
  // waits.
  MSCCLSH_DEV void plain(const Message &m) const {
    constexpr int kBatch = 4;
    const bool fast = aligned(m, 16);
    const int64_t words = (m.bytes + 15) / 16, stride = t.size;
    for (int64_t w = t.id; w < words; w += kBatch * stride) {
      Pair x[kBatch] = {}, y[kBatch] = {};
      MSCCLSH_UNROLL
      for (int u = 0; u < kBatch; u++) {
        int64_t k = w + u * stride;
        if (k >= words) break;
        x[u] = m.in ? load16_slot(m.in + 16 * k) : get16(m.x, k, m.bytes, fast);
        if (m.y) y[u] = get16(m.y, k, m.bytes, fast);
      }
      MSCCLSH_UNROLL
      for (int u = 0; u < kBatch; u++) {
        int64_t k = w + u * stride;
        if (k >= words) break;
        Pair v = x[u];
        if (m.y) v = Pair{combine<T, kOp>(v.a, y[u].a), combine<T, kOp>(v.b, y[u].b)};
        if (m.out) store16_slot(m.out + 16 * k, v);
        if (m.dst) put16(m.dst, k, m.bytes, fast, v);
      }
    }
  }
};

}  // namespace mscclsh

#endif
