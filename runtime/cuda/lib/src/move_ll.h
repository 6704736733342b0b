// Moving messages in LL's packets: 8 bytes and their flags in 16.
#ifndef MSCCLSH_MOVE_LL_H
#define MSCCLSH_MOVE_LL_H

#include "move.h"

namespace mscclsh {

// slow_ll moves what is not aligned or not whole, element by element, from packet k of a
// message on. It returns why it gave up, 0 if it did not.
template <class Packets, class Joined>
MSCCLSH_COLD int32_t slow_ll(Packets p, Message m, Joined joined, uint32_t k) {
  const uint32_t words = uint32_t((m.bytes + 7) / 8);
  Spin spin;
  for (; k < words; k += p.t.size)
    if (!p.packet(m, joined, k, spin)) return spin.cause;
  return 0;
}

// Packets moves messages of elements T with reduction kOp. Each function returns whether
// all messages came.
template <class T, Op kOp>
struct Packets : Words<T, kOp> {
  using W = Words<T, kOp>;
  using W::a;
  using W::t;
  static constexpr uint32_t kBatch = 4;  // packets of a thread in flight

  MSCCLSH_DEV Packets(const Thread &thread, const Args &args) : W{thread, args} {}

  // move moves any message.
  template <class Joined>
  MSCCLSH_DEV bool move(const Message &m, const Joined &joined, Spin &spin) const {
    Message whole = m;  // what is aligned and whole
    whole.bytes = W::aligned(m) >= 8 ? m.bytes / 8 * 8 : 0;
    if (MSCCLSH_LIKELY(whole.bytes > 0) && !all(whole, joined, spin)) return false;
    if (MSCCLSH_UNLIKELY(whole.bytes < m.bytes)) {
      uint32_t k = t.id;
      while (k < uint32_t(whole.bytes / 8)) k += t.size;
      spin.cause = slow_ll(*this, m, joined, k);
      if (spin.cause != 0) return false;
    }
    clean(m, joined);
    return true;
  }

  // move_whole moves a message of whole, aligned packets.
  template <class Joined>
  MSCCLSH_DEV bool move_whole(const Message &m, const Joined &joined, Spin &spin) const {
    if (!all(m, joined, spin)) return false;
    clean(m, joined);
    return true;
  }

  // all is one loop that is gone through at least once.
  template <class Joined>
  MSCCLSH_DEV bool all(const Message &m, const Joined &joined, Spin &spin) const {
    const uint32_t words = uint32_t(m.bytes / 8), size = t.size;
    uint32_t k = t.id;
    do {
      uint64_t x[kBatch] = {}, y[kBatch] = {};
      MSCCLSH_UNROLL
      for (uint32_t u = 0; u < kBatch; u++) {
        const uint64_t at = 8 * uint64_t(k + u * size);
        if (m.x && k + u * size < words) x[u] = load8(m.x + at);
        if (m.y && k + u * size < words) y[u] = load8(m.y + at);
      }
      if (m.in.at && !arrived(m.in, k, words, x, spin)) return false;
      if (m.y) {
        MSCCLSH_UNROLL
        for (uint32_t u = 0; u < kBatch; u++) x[u] = combine<T, kOp>(x[u], y[u]);
      }
      MSCCLSH_ROLLED
      for (int j = 0; j < joined.n_in; j++) {
        if (const unsigned char *local = joined.local(j)) {
          MSCCLSH_UNROLL
          for (uint32_t u = 0; u < kBatch; u++)
            if (k + u * size < words) y[u] = load8(local + 8 * uint64_t(k + u * size));
        } else if (!arrived(joined.in(j), k, words, y, spin)) {
          return false;
        }
        MSCCLSH_UNROLL
        for (uint32_t u = 0; u < kBatch; u++) x[u] = combine<T, kOp>(y[u], x[u]);
      }
      MSCCLSH_ROLLED
      for (int j = -1; j < joined.n_out; j++) {
        const Slot out = j < 0 ? m.out : joined.out(j);
        MSCCLSH_UNROLL
        for (uint32_t u = 0; u < kBatch; u++)
          if (out.at && k + u * size < words)
            store_packet(out.at + 16 * uint64_t(k + u * size), x[u], uint32_t(out.flag));
      }
      MSCCLSH_UNROLL
      for (uint32_t u = 0; u < kBatch; u++)
        if (m.dst && k + u * size < words) store8(m.dst + 8 * uint64_t(k + u * size), x[u]);
      k += kBatch * size;
    } while (k < words);
    return true;
  }

  // arrived waits for packets k, k + size, ..., as many as there are.
  MSCCLSH_DEV bool arrived(const Slot &in, uint32_t k, uint32_t words, uint64_t *v,
                           Spin &spin) const {
    for (;;) {
      bool there = true;
      MSCCLSH_UNROLL
      for (uint32_t u = 0; u < kBatch; u++) {
        const uint32_t p = k + u * t.size;
        if (p < words) there &= load_packet(in.at + 16 * uint64_t(p), uint32_t(in.flag), &v[u]);
      }
      if (there) return true;
      if (!spin.go_on(a)) return false;
    }
  }

  // arrive waits for the whole of a message.
  MSCCLSH_DEV bool arrive(const Slot &in, int64_t bytes, Spin &spin) const {
    uint64_t v;
    for (uint32_t k = t.id; k < uint32_t((bytes + 7) / 8); k += t.size)
      if (!arrives(in, k, &v, spin)) return false;
    return true;
  }

  // packet moves packet k, of which some elements may not be the message's.
  template <class Joined>
  MSCCLSH_DEV bool packet(const Message &m, const Joined &joined, uint32_t k, Spin &spin) const {
    const int64_t left = m.bytes - 8 * int64_t(k);
    const uint64_t at = 8 * uint64_t(k);
    uint64_t x = m.x ? W::get(m.x + at, left, 1) : 0, y = m.y ? W::get(m.y + at, left, 1) : 0;
    if (m.in.at && !arrives(m.in, k, &x, spin)) return false;
    if (m.y) x = combine<T, kOp>(x, y);
    MSCCLSH_ROLLED
    for (int j = 0; j < joined.n_in; j++) {
      if (const unsigned char *local = joined.local(j))
        y = W::get(local + at, left, 1);
      else if (!arrives(joined.in(j), k, &y, spin))
        return false;
      x = combine<T, kOp>(y, x);
    }
    MSCCLSH_ROLLED
    for (int j = -1; j < joined.n_out; j++) {
      const Slot out = j < 0 ? m.out : joined.out(j);
      if (out.at) store_packet(out.at + 2 * at, x, uint32_t(out.flag));
    }
    if (m.dst) W::put(m.dst + at, left, 1, x);
    return true;
  }

  MSCCLSH_DEV bool arrives(const Slot &in, uint32_t k, uint64_t *v, Spin &spin) const {
    while (!load_packet(in.at + 16 * uint64_t(k), uint32_t(in.flag), v))
      if (!spin.go_on(a)) return false;
    return true;
  }

  // clean writes the rest of slots that are to be written whole.
  template <class Joined>
  MSCCLSH_DEV void clean(const Message &m, const Joined &joined) const {
    const uint32_t words = uint32_t((m.bytes + 7) / 8);
    MSCCLSH_ROLLED
    for (int j = -1; j < joined.n_out; j++) {
      const Slot out = j < 0 ? m.out : joined.out(j);
      if (MSCCLSH_UNLIKELY(out.clean > words)) {
        for (uint32_t k = words + t.id; k < out.clean; k += t.size)
          store_packet(out.at + 16 * uint64_t(k), 0, uint32_t(out.flag));
      }
    }
  }
};

}  // namespace mscclsh

#endif
