// Moving the lanes of one-sided operations: any number of sources, reduced in their order,
// into any number of destinations, plain bytes or packets.
#ifndef MSCCLSH_ONE_MOVE_H
#define MSCCLSH_ONE_MOVE_H

#include "move.h"
#include "one_shim.h"
#include "one_tables.h"

namespace mscclsh {

// kAny takes the reduction from the operation: for programs with several.
constexpr Op kAny = kOps;

template <class T>
MSCCLSH_COLD uint64_t combine_any(int32_t op, uint64_t a, uint64_t b) {
  if (op == kProd) return combine<T, kProd>(a, b);
  if (op == kMin) return combine<T, kMin>(a, b);
  if (op == kMax) return combine<T, kMax>(a, b);
  return combine<T, kSum>(a, b);
}

// Lane is one lane of an operation in one turn of a pipeline, from byte at of it on.
struct Lane {
  const OneArea *areas;  // what is read, then what is written
  uint32_t n_reads, n_writes;
  uint32_t odd;   // 1 in launches that take the second half of scratch
  uint32_t flag;  // of packets
  int32_t op;
  int64_t at, bytes;

  // place is where an area lies for this lane.
  MSCCLSH_DEV unsigned char *place(uint32_t i) const {
    const OneArea &a = areas[i];
    return a.at + (odd ? a.half : 0) + (a.packets ? 2 * at : at);
  }
};

template <class T, Op kOp>
struct LaneMover {
  using Bits = typename T::Bits;
  Thread t;
  const Args &a;

  // kReduced is how many words or vectors of a thread are reduced at a time: few where that
  // takes calls.
  static constexpr int kReduced =
      sizeof(Bits) == 1 && std::is_same<typename T::Num, double>::value ? 1 : 4;

  MSCCLSH_DEV static uint64_t reduce(const Lane &l, uint64_t x, uint64_t y) {
    if constexpr (kOp == kAny)
      return combine_any<T>(l.op, x, y);
    else
      return combine<T, kOp>(x, y);
  }
  MSCCLSH_DEV static Pair reduce16(const Lane &l, Pair x, Pair y) {
    return Pair{reduce(l, x.a, y.a), reduce(l, x.b, y.b)};
  }

  // aligned is whether all plain places of a lane are at multiples of unit bytes.
  MSCCLSH_DEV static bool aligned(const Lane &l, uintptr_t unit) {
    uintptr_t bits = 0;
    MSCCLSH_ROLLED
    for (uint32_t i = 0; i < l.n_reads + l.n_writes; i++)
      if (!l.areas[i].packets) bits |= reinterpret_cast<uintptr_t>(l.place(i));
    return (bits & (unit - 1)) == 0;
  }

  // copy is a lane of one source and one destination, of whole aligned vectors.
  MSCCLSH_DEV int64_t copy(const Lane &l) const {
    constexpr int kBatch = 8;
    const unsigned char *from = l.place(0);
    unsigned char *to = l.place(1);
    const int64_t n = l.bytes / 16, stride = t.size;
    int64_t k = t.id;
    for (; k + (kBatch - 1) * stride < n; k += kBatch * stride) {
      Pair v[kBatch];
      MSCCLSH_UNROLL
      for (int u = 0; u < kBatch; u++) v[u] = load16_slot(from + 16 * (k + u * stride));
      MSCCLSH_UNROLL
      for (int u = 0; u < kBatch; u++) store16(to + 16 * (k + u * stride), v[u]);
    }
    for (; k < n; k += stride) store16(to + 16 * k, load16_slot(from + 16 * k));
    return n;
  }

  // vectors moves vectors k, k + size, ... of a lane, 16 bytes each.
  template <int kBatch>
  MSCCLSH_DEV void vectors(const Lane &l, int64_t k) const {
    const uint64_t at = 16 * uint64_t(k), step = 16 * uint64_t(t.size);
    Pair x[kBatch], y[kBatch];
    const unsigned char *from = l.place(0) + at;
    MSCCLSH_UNROLL
    for (int u = 0; u < kBatch; u++) x[u] = load16_slot(from + u * step);
    MSCCLSH_ROLLED
    for (uint32_t j = 1; j < l.n_reads; j++) {
      from = l.place(j) + at;
      MSCCLSH_UNROLL
      for (int u = 0; u < kBatch; u++) y[u] = load16_slot(from + u * step);
      MSCCLSH_UNROLL
      for (int u = 0; u < kBatch; u++) x[u] = reduce16(l, x[u], y[u]);
    }
    MSCCLSH_ROLLED
    for (uint32_t j = 0; j < l.n_writes; j++) {
      unsigned char *to = l.place(l.n_reads + j) + at;
      MSCCLSH_UNROLL
      for (int u = 0; u < kBatch; u++) store16(to + u * step, x[u]);
    }
  }

  // plain moves a lane of plain bytes. Nothing in it waits.
  MSCCLSH_DEV void plain(const Lane &l) const {
    int64_t done = 0;
    if (MSCCLSH_LIKELY(aligned(l, 16))) {
      if (l.n_reads == 1 && l.n_writes == 1) {
        done = copy(l);
      } else {
        constexpr int kBatch = kReduced;
        done = l.bytes / 16;
        const int64_t stride = t.size;
        int64_t k = t.id;
        for (; k + (kBatch - 1) * stride < done; k += kBatch * stride) vectors<kBatch>(l, k);
        for (; k < done; k += stride) vectors<1>(l, k);
      }
    }
    if (MSCCLSH_UNLIKELY(16 * done < l.bytes)) parts(l, 2 * done);
  }

  // parts moves words of 8 bytes, from word k on, which may lie anywhere and be cut short,
  // element by element.
  MSCCLSH_DEV void parts(const Lane &l, int64_t k) const {
    for (k += t.id; 8 * k < l.bytes; k += t.size) {
      const int64_t left = l.bytes - 8 * k;
      uint64_t x = load_part<Bits>(l.place(0) + 8 * k, left);
      MSCCLSH_ROLLED
      for (uint32_t j = 1; j < l.n_reads; j++)
        x = reduce(l, x, load_part<Bits>(l.place(j) + 8 * k, left));
      MSCCLSH_ROLLED
      for (uint32_t j = 0; j < l.n_writes; j++)
        store_part<Bits>(l.place(l.n_reads + j) + 8 * k, left, x);
    }
  }

  // packets moves a lane some of whose areas hold packets of 8 bytes; it returns whether all
  // packets came. Plain places are aligned to 8 bytes.
  MSCCLSH_DEV bool packets(const Lane &l, Spin &spin) const {
    constexpr uint32_t kBatch = kReduced;
    const uint32_t words = uint32_t(l.bytes / 8), size = t.size;
    // What is there already is loaded before what has to be awaited.
    const uint32_t last = l.n_reads - 1;
    const bool own = last > 0 && !l.areas[last].packets;
    uint32_t k = t.id;
    do {  // once even with nothing to move: see one_quick.h
      uint64_t x[kBatch] = {}, y[kBatch] = {}, z[kBatch] = {};
      if (own) load(l.place(last), k, words, z);
      if (!get(l, 0, k, words, x, spin)) return false;
      MSCCLSH_ROLLED
      for (uint32_t j = 1; j < l.n_reads - own; j++) {
        if (!get(l, j, k, words, y, spin)) return false;
        MSCCLSH_UNROLL
        for (uint32_t u = 0; u < kBatch; u++) x[u] = reduce(l, x[u], y[u]);
      }
      if (own) {
        MSCCLSH_UNROLL
        for (uint32_t u = 0; u < kBatch; u++) x[u] = reduce(l, x[u], z[u]);
      }
      MSCCLSH_ROLLED
      for (uint32_t j = 0; j < l.n_writes; j++) put(l, l.n_reads + j, k, words, x);
    } while ((k += kBatch * size) < words);
    return true;
  }

  // load brings words k, k + size, ..., get the same of any area.
  template <uint32_t kBatch>
  MSCCLSH_DEV void load(const unsigned char *from, uint32_t k, uint32_t words,
                        uint64_t (&v)[kBatch]) const {
    MSCCLSH_UNROLL
    for (uint32_t u = 0; u < kBatch; u++)
      if (k + u * t.size < words) v[u] = load8(from + 8 * uint64_t(k + u * t.size));
  }
  template <uint32_t kBatch>
  MSCCLSH_DEV bool get(const Lane &l, uint32_t area, uint32_t k, uint32_t words,
                       uint64_t (&v)[kBatch], Spin &spin) const {
    const unsigned char *from = l.place(area);
    if (!l.areas[area].packets) {
      load(from, k, words, v);
      return true;
    }
    for (;;) {
      bool there = true;
      MSCCLSH_UNROLL
      for (uint32_t u = 0; u < kBatch; u++)
        if (k + u * t.size < words)
          there &= load_packet(from + 16 * uint64_t(k + u * t.size), l.flag, &v[u]);
      if (MSCCLSH_LIKELY(there)) return true;
      if (!spin.go_on(a)) return false;
    }
  }
  template <uint32_t kBatch>
  MSCCLSH_DEV void put(const Lane &l, uint32_t area, uint32_t k, uint32_t words,
                       const uint64_t (&v)[kBatch]) const {
    unsigned char *to = l.place(area);
    const bool packets = l.areas[area].packets;
    MSCCLSH_UNROLL
    for (uint32_t u = 0; u < kBatch; u++) {
      const uint64_t at = k + u * t.size;
      if (at >= words) continue;
      if (packets)
        store_packet(to + 16 * at, v[u], l.flag);
      else
        store8(to + 8 * at, v[u]);
    }
  }

  // many is packets for lanes whose sources are packets of several ranks, and then perhaps
  // the own: it looks at several of them at once.
  MSCCLSH_DEV bool many(const Lane &l, Spin &spin) const {
    constexpr uint32_t kBatch = kReduced;
    const uint32_t words = uint32_t(l.bytes / 8);
    const uint32_t sources = l.n_reads - !l.areas[l.n_reads - 1].packets;
    uint32_t k = t.id;
    do {  // as in packets
      const bool has = k < words;
      uint64_t x = 0, z = 0;
      if (has && sources < l.n_reads) z = load8(l.place(sources) + 8 * uint64_t(k));
      MSCCLSH_ROLLED
      for (uint32_t j = 0; j < sources; j += kBatch) {
        uint64_t v[kBatch] = {};
        for (;;) {
          bool there = true;
          MSCCLSH_UNROLL
          for (uint32_t u = 0; u < kBatch; u++)
            if (has && j + u < sources)
              there &= load_packet(l.place(j + u) + 16 * uint64_t(k), l.flag, &v[u]);
          if (MSCCLSH_LIKELY(there)) break;
          if (!spin.go_on(a)) return false;
        }
        MSCCLSH_UNROLL
        for (uint32_t u = 0; u < kBatch; u++)
          if (j + u < sources) x = j + u == 0 ? v[u] : reduce(l, x, v[u]);
      }
      if (sources < l.n_reads) x = reduce(l, x, z);
      const uint64_t out[1] = {x};
      MSCCLSH_ROLLED
      for (uint32_t j = 0; j < l.n_writes; j++) put(l, l.n_reads + j, k, words, out);
    } while ((k += t.size) < words);
    return true;
  }

  // slowly is packets for plain places anywhere, and packets of 4 bytes: word by word, each
  // in a packet. It returns why it gave up, 0 if it did not.
  MSCCLSH_DEV int32_t slowly(const Lane &l, int64_t word) const {
    Spin spin;
    for (int64_t k = t.id; k * word < l.bytes; k += t.size) {
      uint64_t x = 0, y = 0;
      MSCCLSH_ROLLED
      for (uint32_t j = 0; j < l.n_reads; j++) {
        const unsigned char *from = l.place(j);
        if (!l.areas[j].packets) y = load_part<Bits>(from + k * word, word);
        while (l.areas[j].packets && !(word == 4 ? load_packet4(from + 8 * k, l.flag, &y)
                                                 : load_packet(from + 16 * k, l.flag, &y)))
          if (!spin.go_on(a)) return spin.cause;
        x = j == 0 ? y : reduce(l, x, y);
      }
      MSCCLSH_ROLLED
      for (uint32_t j = 0; j < l.n_writes; j++) {
        unsigned char *to = l.place(l.n_reads + j);
        if (!l.areas[l.n_reads + j].packets)
          store_part<Bits>(to + k * word, word, x);
        else if (word == 4)
          store_packet4(to + 8 * k, uint32_t(x), l.flag);
        else
          store_packet(to + 16 * k, x, l.flag);
      }
    }
    return 0;
  }
};

// Called, so that their registers come on top of few. Those that wait return why they gave
// up, 0 if they did not.
template <class Mover>
MSCCLSH_COLD void plain_apart(Mover m, Lane l) {
  m.plain(l);
}
template <class Mover>
MSCCLSH_COLD int32_t packets_apart(Mover m, Lane l) {
  Spin spin;
  return m.packets(l, spin) ? 0 : spin.cause;
}
template <class Mover>
MSCCLSH_COLD int32_t many_apart(Mover m, Lane l) {
  Spin spin;
  return m.many(l, spin) ? 0 : spin.cause;
}
template <class Mover>
MSCCLSH_COLD int32_t slowly_apart(Mover m, Lane l, int64_t word) {
  return m.slowly(l, word);
}

}  // namespace mscclsh

#endif
