// The interpreter for short programs: a launch of few small messages, whose time is that
// of fetching instructions and of the way to the peer. It does the same as Interpreter
// with LL and LL128 for programs that prepare finds quick: one tile, steps of one message
// each, all in shared memory, aligned and whole, few enough messages that no credit is
// due before the launch ends, no dependencies, no trace.
//
// A launch finds the instruction cache cold, and fetching a line costs as much as a trip
// to memory. So while the first warp brings the block's table, the second goes through the
// whole of the code once with a message of no bytes: when the table is there, so is the
// code. Where the launch before allows it, both happen while that one still runs.
#ifndef MSCCLSH_QUICK_H
#define MSCCLSH_QUICK_H

#include "connect.h"

namespace mscclsh {

// Nothing is what the second warp goes through without effect.
struct alignas(16) Nothing {
  Step step;
  End end;
};

template <class T, Op kOp, Protocol kProto>
class Quick {
 public:
  MSCCLSH_DEV Quick(const Thread &t, const Args &a, unsigned char *shared)
      : t_(t),
        a_(a),
        s_(*reinterpret_cast<Shared *>(shared)),
        b_(*reinterpret_cast<Block *>(shared + sizeof(Shared))) {
    unsigned char *head = shared + sizeof(Shared);
    ends_ = reinterpret_cast<End *>(head + sizeof(Block));
    steps_ = reinterpret_cast<Step *>(head + sizeof(Block) + a.max_ends * sizeof(End));
    nothing_ = reinterpret_cast<Nothing *>(head + a.head_bytes);
  }

  MSCCLSH_DEV void run() {
    for (bool dry = t_.id / kWarp == 1;; dry = false) {
      const Step *st = steps_;
      End *ends = ends_;
      int n = 1;
      if (dry) {
        st = &nothing_->step;
        ends = &nothing_->end;
        make_nothing();
      } else {
        if (t_.id < kWarp) enter();
        t_.sync();
        n = b_.n_steps;
      }
      for (const Step *last = st + n; st < last; st += 1 + st->join) {
        if (MSCCLSH_UNLIKELY(st->flags & kMeet) && t_.sync_or(!ok_)) return;
        step(*st, ends);
      }
      if (!dry) return;
    }
  }

 private:
  // Flagged moves messages with flags.
  using Flagged = std::conditional_t<kProto == kLL, Packets<T, kOp>, Lines<T, kOp>>;

  // make_nothing makes a step of no bytes.
  MSCCLSH_DEV void make_nothing() {
    if (t_.id % kWarp == 0) {
      Step &st = nothing_->step;
      st.count = 0;
      st.kind = kNop;
      st.flags = kIn | kOut;
      st.join = st.join_in = st.join_out = 0;
      st.x = st.y = st.dst = reinterpret_cast<unsigned char *>(&st);
      st.in = st.out = 0;
      st.in_before = st.out_before = 0;
      End &e = nothing_->end;
      e.slots = st.x;
      e.stride = e.first = e.sends = 0;
      e.limit = 1;
    }
    t_.sync_warp();
  }

  // enter brings the block's table into shared memory, says how many messages were taken
  // in earlier launches, and keeps for the next one how many will be then.
  MSCCLSH_DEV void enter() {
    const unsigned char *table = a_.blocks + t_.block * a_.block_bytes;
    unsigned char *head = reinterpret_cast<unsigned char *>(&b_);
    for (uint32_t i = 16 * t_.id; i < a_.head_bytes; i += 16 * kWarp)
      *reinterpret_cast<Pair *>(head + i) = load16(table + i);
    if (t_.id == 0) s_.claimed = 0;
    t_.sync_warp();
    wait_for_earlier();
    let_next_start();  // after the wait, so that no more than one launch is ahead
    for (int i = t_.id; i < b_.n_ends; i += kWarp) {
      End &e = ends_[i];
      const uint64_t seq = load8(e.seq);
      e.first = seq;
      store8(e.seq, seq + e.per_tile);
      if (e.sends)
        e.limit = load_credit(e.mine) + uint32_t(a_.slots);
      else
        store_credit(e.theirs, seq);
    }
  }

  // step does a step and those that have joined it.
  MSCCLSH_DEV void step(const Step &st, const End *ends) {
    Message msg;
    msg.x = st.x;
    msg.y = st.y;
    msg.dst = st.dst;
    msg.bytes = st.count * a_.chunk_bytes;
    if (st.flags & kIn) {
      const End &e = ends[st.in];
      msg.in = slot_of<kProto>(a_, e, e.first + st.in_before);
    }
    if (st.flags & kOut) {
      const End &e = ends[st.out];
      const uint64_t n = e.first + st.out_before;
      msg.out = slot_of<kProto>(a_, e, n);
      if (MSCCLSH_UNLIKELY(n >= e.limit)) await_slot(st, n);
    }
    const Joined<kProto> joined{a_, ends, &st + 1, st.join_in, st.join_out, st.join - st.join_out,
                                0,  0};
    MSCCLSH_ROLLED
    for (int j = 0; j < joined.n_out; j++) {
      const Step &s = (&st)[1 + st.join_out + j];
      const uint64_t n = ends[s.out].first + s.out_before;
      if (MSCCLSH_UNLIKELY(n >= ends[s.out].limit)) await_slot(s, n);
    }
    if (MSCCLSH_UNLIKELY(!ok_)) return;
    Spin spin;
    ok_ = Flagged(t_, a_).move_whole(msg, joined, spin);
    if (MSCCLSH_LIKELY(ok_)) return;
    const Step *s = &st;
    while (!(s->flags & kIn)) s++;
    no_message(waiter(*s), spin.cause, s->in, waiter(*s).in_number(*s, 0) + 1);
  }

  // await_slot waits for a slot. With LL128 a warp goes on, or gives up, together.
  MSCCLSH_DEV void await_slot(const Step &st, uint64_t n) {
    ok_ &= wait_slot(waiter(st), st.out, n);
    if (kProto == kLL128) ok_ = !t_.any(!ok_);
  }

  // waiter is this thread, to wait in a step.
  MSCCLSH_DEV Waiter waiter(const Step &st) const {
    return {t_, &a_, &s_, ends_, 0, int32_t(&st - steps_)};
  }

  const Thread t_;
  const Args &a_;
  Shared &s_;
  Block &b_;
  End *ends_;
  Step *steps_;
  Nothing *nothing_;
  bool ok_ = true;  // of this thread: nothing it waited for has failed to come
};

}  // namespace mscclsh

#endif
