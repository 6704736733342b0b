// Moving plain bytes: between memory and Simple's slots, within memory, and, with Direct,
// to and from a peer's memory.
#ifndef MSCCLSH_MOVE_PLAIN_H
#define MSCCLSH_MOVE_PLAIN_H

#include "move.h"

namespace mscclsh {

// slow_plain moves what is not aligned or not whole, element by element, from vector k of
// a message on.
template <class Plainly, class Joined>
MSCCLSH_COLD void slow_plain(Plainly p, Message m, Joined joined, int64_t k) {
  const int64_t words = (m.bytes + 15) / 16;
  for (; k < words; k += p.t.size) p.template vectors<1, false>(m, joined, k);
}

// Vectors moves messages of elements T with reduction kOp, 16 bytes at a time.
template <class T, Op kOp>
struct Vectors : Words<T, kOp> {
  using W = Words<T, kOp>;
  using W::t;

  MSCCLSH_DEV Vectors(const Thread &thread, const Args &args) : W{thread, args} {}

  // plain moves between memory, here or at a peer, and slots of plain bytes, 16 at a
  // time. Nothing in it waits. far is the alignment of slots, which with Direct are places
  // in a peer's memory.
  template <class Joined>
  MSCCLSH_DEV void move(const Message &m, const Joined &joined, int far) const {
    constexpr int kBatch = 4;
    const int64_t words = (m.bytes + 15) / 16, stride = t.size;
    const int64_t fast = W::aligned(m) == 16 && far == 16 ? m.bytes / 16 : 0;
    int64_t k = t.id;
    for (; k + (kBatch - 1) * stride < fast; k += kBatch * stride)
      vectors<kBatch, true>(m, joined, k);
    for (; k < fast; k += stride) vectors<1, true>(m, joined, k);
    if (MSCCLSH_UNLIKELY(fast < words)) slow_plain(*this, m, joined, k);
  }

  // vectors moves 16 bytes k, k + size, ...
  template <int kBatch, bool kFast, class Joined>
  MSCCLSH_DEV void vectors(const Message &m, const Joined &joined, int64_t k) const {
    constexpr int kAlign = kFast ? 16 : 1;
    const uint64_t at = 16 * uint64_t(k), step = 16 * uint64_t(t.size);
    const int64_t left = m.bytes - int64_t(at);
    Pair x[kBatch] = {}, y[kBatch] = {};
    MSCCLSH_UNROLL
    for (int u = 0; u < kBatch; u++) {
      const uint64_t o = at + u * step;
      x[u] = m.in.at ? get_far<kFast>(m.in.at + o, left - int64_t(u * step))
                     : W::get16(m.x + o, left - int64_t(u * step), kAlign);
      if (m.y) y[u] = W::get16(m.y + o, left - int64_t(u * step), kAlign);
    }
    if (m.y) {
      MSCCLSH_UNROLL
      for (int u = 0; u < kBatch; u++) x[u] = W::combine16(x[u], y[u]);
    }
    MSCCLSH_ROLLED
    for (int j = 0; j < joined.n_in; j++) {
      const unsigned char *local = joined.local(j);
      const unsigned char *p = (local ? local : joined.in(j).at) + at;
      MSCCLSH_UNROLL
      for (int u = 0; u < kBatch; u++)
        y[u] = local ? W::get16(p + u * step, left - int64_t(u * step), 1)
                     : get_far<kFast>(p + u * step, left - int64_t(u * step));
      MSCCLSH_UNROLL
      for (int u = 0; u < kBatch; u++) x[u] = W::combine16(y[u], x[u]);
    }
    MSCCLSH_ROLLED
    for (int j = -1; j < joined.n_out; j++) {
      const Slot out = j < 0 ? m.out : joined.out(j);
      if (!out.at) continue;
      MSCCLSH_UNROLL
      for (int u = 0; u < kBatch; u++)
        W::put16(out.at + at + u * step, left - int64_t(u * step), kAlign, x[u]);
    }
    if (m.dst) {
      MSCCLSH_UNROLL
      for (int u = 0; u < kBatch; u++)
        W::put16(m.dst + at + u * step, left - int64_t(u * step), kAlign, x[u]);
    }
  }

  // get_far is get16 of what another device wrote.
  template <bool kFast>
  MSCCLSH_DEV static Pair get_far(const unsigned char *p, int64_t left) {
    return kFast ? load16_slot(p) : W::get16(p, left, 1);
  }
};

// move_apart is Vectors::move for what is rare, or long enough not to mind a call.
template <class T, Op kOp, class Joined>
MSCCLSH_COLD void move_apart(Vectors<T, kOp> v, Message m, Joined joined, int far) {
  v.move(m, joined, far);
}

}  // namespace mscclsh

#endif
