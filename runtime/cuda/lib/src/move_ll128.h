// Moving messages in LL128's lines: 120 bytes and a flag in 128. All lanes of a warp stay
// together.
#ifndef MSCCLSH_MOVE_LL128_H
#define MSCCLSH_MOVE_LL128_H

#include "move.h"

namespace mscclsh {

// slow_ll128 moves what is not aligned or not whole, element by element, from unit u of a
// message on. It returns why it gave up, 0 if it did not.
template <class Lines, class Joined>
MSCCLSH_COLD int32_t slow_ll128(Lines l, Message m, Joined joined, uint32_t u) {
  Spin spin;
  for (; kUnitBytes * int64_t(u) < m.bytes; u += l.t.size / kWarp)
    if (!l.unit(m, joined, u, spin)) return spin.cause;
  return 0;
}

// Lines moves messages of elements T with reduction kOp. Each function returns whether
// all messages came.
template <class T, Op kOp>
struct Lines : Words<T, kOp> {
  using W = Words<T, kOp>;
  using W::a;
  using W::t;
  static constexpr int kWhole = int(kUnitBytes / 16);  // vectors of a unit

  // Unit is the part of a unit of eight lines that a thread carries.
  struct Unit {
    Pair v[kUnitVectors];
  };

  MSCCLSH_DEV Lines(const Thread &thread, const Args &args) : W{thread, args} {}

  // move moves any message.
  template <class Joined>
  MSCCLSH_DEV bool move(const Message &m, const Joined &joined, Spin &spin) const {
    Message whole = m;  // what is aligned and whole
    if (W::aligned(m) < 16)
      whole.bytes = 0;
    else if (m.bytes % 16 != 0)
      whole.bytes = (m.bytes - 1) / kUnitBytes * kUnitBytes;
    uint32_t unit = t.id / kWarp;
    if (MSCCLSH_LIKELY(whole.bytes > 0) && !all(whole, joined, &unit, spin)) return false;
    if (MSCCLSH_UNLIKELY(whole.bytes < m.bytes)) {
      spin.cause = slow_ll128(*this, m, joined, unit);
      if (spin.cause != 0) return false;
      while (kUnitBytes * int64_t(unit) < m.bytes) unit += t.size / kWarp;
    }
    clean(m, joined, unit);
    return true;
  }

  // move_whole moves a message of whole, aligned vectors.
  template <class Joined>
  MSCCLSH_DEV bool move_whole(const Message &m, const Joined &joined, Spin &spin) const {
    uint32_t unit = t.id / kWarp;
    if (!all(m, joined, &unit, spin)) return false;
    clean(m, joined, unit);
    return true;
  }

  // all moves units *next, *next + warps, ... of a message of whole, aligned
  // vectors, in one loop that is gone through at least once.
  template <class Joined>
  MSCCLSH_DEV bool all(const Message &m, const Joined &joined, uint32_t *next, Spin &spin) const {
    const uint32_t warps = t.size / kWarp, lane = t.id % kWarp;
    const uint32_t vectors = uint32_t(m.bytes / 16);
    uint32_t unit = *next;
    do {
      // What of the message this unit and the ones after it have.
      const int left = int(vectors) - int(unit * kWhole), n = left < kWhole ? left : kWhole;
      const uint64_t at = kUnitBytes * uint64_t(unit);
      Unit x = {}, y = {};
      MSCCLSH_UNROLL
      for (int j = 0; j < kUnitVectors; j++) {
        const int i = unit_vector(lane, j);
        if (m.x && i < n) x.v[j] = load16(m.x + at + 16 * i);
        if (m.y && i < n) y.v[j] = load16(m.y + at + 16 * i);
      }
      if (m.in.at && !lines(m.in, unit, lane, n, &x, spin)) return false;
      if (m.y) reduce(&x, x, y);
      MSCCLSH_ROLLED
      for (int j = 0; j < joined.n_in; j++) {
        if (const unsigned char *local = joined.local(j)) {
          MSCCLSH_UNROLL
          for (int v = 0; v < kUnitVectors; v++) {
            const int i = unit_vector(lane, v);
            if (i < n) y.v[v] = load16(local + at + 16 * i);
          }
        } else if (!lines(joined.in(j), unit, lane, n, &y, spin)) {
          return false;
        }
        reduce(&x, y, x);
      }
      MSCCLSH_ROLLED
      for (int j = -1; j < joined.n_out; j++) {
        const Slot out = j < 0 ? m.out : joined.out(j);
        if (out.at)
          store_unit(out.at + 1024 * uint64_t(unit), lane, x.v, out.flag,
                     out.clean && n > 0 ? kWhole : n);
      }
      MSCCLSH_UNROLL
      for (int j = 0; j < kUnitVectors; j++) {
        const int i = unit_vector(lane, j);
        if (m.dst && i < n) store16(m.dst + at + 16 * i, x.v[j]);
      }
      unit += warps;
    } while (unit * kWhole < vectors);
    *next = unit - warps < (vectors + kWhole - 1) / kWhole ? unit : unit - warps;
    return true;
  }

  // lines waits for a unit of a message.
  MSCCLSH_DEV bool lines(const Slot &in, uint32_t unit, uint32_t lane, int n, Unit *v,
                         Spin &spin) const {
    for (;;) {
      const bool missing = !load_unit(in.at + 1024 * uint64_t(unit), lane, v->v, in.flag, n);
      if (!t.any(missing)) return true;
      if (t.any(!spin.go_on(a))) {
        spin.cause = t.any(spin.cause == 1) ? 1 : 2;
        return false;
      }
    }
  }

  MSCCLSH_DEV static void reduce(Unit *to, const Unit &x, const Unit &y) {
    MSCCLSH_UNROLL
    for (int j = 0; j < kUnitVectors; j++) to->v[j] = W::combine16(x.v[j], y.v[j]);
  }

  // arrive waits for the whole of a message.
  MSCCLSH_DEV bool arrive(const Slot &in, int64_t bytes, Spin &spin) const {
    Unit v;
    for (uint32_t u = t.id / kWarp; kUnitBytes * int64_t(u) < bytes; u += t.size / kWarp) {
      const int64_t left = bytes - kUnitBytes * int64_t(u);
      const int n = left < kUnitBytes ? int((left + 15) / 16) : kWhole;
      if (!lines(in, u, t.id % kWarp, n, &v, spin)) return false;
    }
    return true;
  }

  // unit moves unit u, of which some elements may not be the message's.
  template <class Joined>
  MSCCLSH_DEV bool unit(const Message &m, const Joined &joined, uint32_t u, Spin &spin) const {
    const uint32_t lane = t.id % kWarp;
    const uint64_t at = kUnitBytes * uint64_t(u);
    const int64_t left = m.bytes - int64_t(at);
    const int n = left < kUnitBytes ? int((left + 15) / 16) : kWhole;
    Unit x = {}, y = {};
    if (m.x) load(m.x + at, left, lane, n, &x);
    if (m.y) load(m.y + at, left, lane, n, &y);
    if (m.in.at && !lines(m.in, u, lane, n, &x, spin)) return false;
    if (m.y) reduce(&x, x, y);
    MSCCLSH_ROLLED
    for (int j = 0; j < joined.n_in; j++) {
      if (const unsigned char *local = joined.local(j))
        load(local + at, left, lane, n, &y);
      else if (!lines(joined.in(j), u, lane, n, &y, spin))
        return false;
      reduce(&x, y, x);
    }
    MSCCLSH_ROLLED
    for (int j = -1; j < joined.n_out; j++) {
      const Slot out = j < 0 ? m.out : joined.out(j);
      if (out.at)
        store_unit(out.at + 1024 * uint64_t(u), lane, x.v, out.flag, out.clean ? kWhole : n);
    }
    MSCCLSH_ROLLED
    for (int j = 0; m.dst && j < kUnitVectors; j++) {
      const int i = unit_vector(lane, j);
      if (i < n) W::put16(m.dst + at + 16 * i, left - 16 * i, 1, x.v[j]);
    }
    return true;
  }

  MSCCLSH_DEV static void load(const unsigned char *p, int64_t left, uint32_t lane, int n,
                               Unit *v) {
    MSCCLSH_ROLLED
    for (int j = 0; j < kUnitVectors; j++) {
      const int i = unit_vector(lane, j);
      if (i < n) v->v[j] = W::get16(p + 16 * i, left - 16 * i, 1);
    }
  }

  // clean writes the rest of slots that are to be written whole, from this warp's unit on.
  template <class Joined>
  MSCCLSH_DEV void clean(const Message &m, const Joined &joined, uint32_t unit) const {
    MSCCLSH_ROLLED
    for (int j = -1; j < joined.n_out; j++) {
      const Slot out = j < 0 ? m.out : joined.out(j);
      if (MSCCLSH_UNLIKELY(out.clean > 0)) {
        const Unit zero = {};
        for (uint32_t u = unit; u < out.clean / 8; u += t.size / kWarp)
          store_unit(out.at + 1024 * uint64_t(u), t.id % kWarp, zero.v, out.flag, kWhole);
      }
    }
  }
};

}  // namespace mscclsh

#endif
