// The interpreter for short programs: a launch of few small messages, whose time is that
// of fetching instructions and of the way to the peer. It does the same as Interpreter
// with LL and LL128 for programs that prepare finds quick: one tile, steps of one message
// each, all in shared memory, aligned and whole, few enough messages that no credit is
// due before the launch ends, none of them strict, no trace. Where thread blocks wait for
// each other's steps, kDeps is true: kernels of their own, so that others don't fetch that.
//
// A launch finds the instruction cache cold, and fetching a line costs as much as a trip
// to memory. So while the first warp brings the block's table, the second goes through the
// whole of the code once with a message of no bytes: when the table is there, so is the
// code. Where the launch before allows it, both happen while that one still runs.
#ifndef MSCCLSH_QUICK_H
#define MSCCLSH_QUICK_H

#include "connect.h"
#include "rebase.h"

namespace mscclsh {

// Nothing is what the second warp goes through without effect.
struct alignas(16) Nothing {
  Step step;
  End end;
  Dep dep;
};

template <class T, Op kOp, Protocol kProto, bool kDeps>
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
        if (!begin(*st, dry)) return;
        step(*st, ends);
        if (!finish(st[st->join], dry)) return;
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
      if (kDeps) {
        st.deps = 1;
        st.post = 1;
        st.dep_start = 0;
        nothing_->dep = Dep{0, 0, 1};
      }
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
    if (a_.rebases) rebase_steps(a_.bases, steps_, uint32_t(b_.n_steps), t_.id, kWarp);
    wait_for_earlier();
    let_next_start();  // after the wait, so that no more than one launch is ahead
    // What is asked for first comes while the rest is asked for: each takes long.
    const uint64_t launch = kDeps ? load8(b_.launches) : 0;
    for (int i = t_.id; i < b_.n_ends; i += kWarp) {
      End &e = ends_[i];
      const Pair n = numbers_of(e.seq);
      const uint64_t seq = n.a;
      e.limit = n.b + uint32_t(a_.slots);  // of no use where it receives
      e.first = seq;
      store8(e.seq, seq + e.per_tile);
      if (!e.sends) store_credit(e.theirs, seq);
    }
    if (kDeps && t_.id == 0) {
      s_.launch = launch << 32;
      store8(b_.launches, launch + 1);
    }
  }

  // begin waits for what a step depends on, and lets the block's threads meet where they
  // must; finish says that a step is done, where somebody waits for it. Both return whether
  // all is well, the same to all threads.
  MSCCLSH_DEV bool begin(const Step &st, bool dry) {
    if (!kDeps) return MSCCLSH_LIKELY(!(st.flags & kMeet)) || !t_.sync_or(!ok_);
    if (st.deps == 0 && !(st.flags & kMeet)) return true;
    // The dry run finds an address where others find what is posted, which is more than 1.
    const unsigned char *head = reinterpret_cast<const unsigned char *>(&b_);
    const Dep *deps =
        dry ? &nothing_->dep : reinterpret_cast<const Dep *>(head + a_.deps_at) + st.dep_start;
    const uint64_t *posted = dry ? reinterpret_cast<const uint64_t *>(a_.blocks) : b_.posted;
    const uint64_t launch = dry ? 0 : s_.launch;
    MSCCLSH_ROLLED
    for (uint32_t i = dry ? t_.id - kWarp : t_.id; i < st.deps; i += t_.size) {
      const uint64_t want = launch + deps[i].step + 1;
      uint64_t have;
      Spin spin;
      while (ok_ && int64_t((have = load_acquire_device(&posted[deps[i].tb])) - want) < 0)
        if (!spin.go_on(a_)) ok_ = no_post(waiter(st), spin.cause, deps[i], have);
    }
    return dry || !t_.sync_or(!ok_);
  }

  MSCCLSH_DEV bool finish(const Step &last, bool dry) {
    if (!kDeps || last.post == 0) return true;
    if (!dry && t_.sync_or(!ok_)) return false;
    if (t_.id == 0)
      store_release_device(&b_.posted[b_.tb], s_.launch + uint32_t(&last - steps_) + 1);
    return true;
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
