// The interpreter: what one block does with its steps.
#ifndef MSCCLSH_INTERPRET_H
#define MSCCLSH_INTERPRET_H

#include "connect.h"
#include "rebase.h"

namespace mscclsh {

template <class T, Op kOp, Protocol kProto>
class Interpreter {
 public:
  MSCCLSH_DEV Interpreter(const Thread &t, const Args &a, unsigned char *shared)
      : t_(t),
        a_(a),
        s_(*reinterpret_cast<Shared *>(shared)),
        b_(*reinterpret_cast<Block *>(shared + sizeof(Shared))),
        table_(a.blocks + t.block * a.block_bytes) {
    unsigned char *head = shared + sizeof(Shared);
    ends_ = reinterpret_cast<End *>(head + sizeof(Block));
    window_ = reinterpret_cast<Step *>(head + steps_at());
    deps_ = reinterpret_cast<const Dep *>((a.head_bytes > a.deps_at ? head : table_) + a.deps_at);
  }

  MSCCLSH_DEV void run() {
    enter();
    for (tile_ = 0; tile_ < a_.tiles; tile_++) {
      at_ = tile_ * a_.tile_bytes;
      bytes_ = a_.chunk_bytes - at_ < a_.tile_bytes ? a_.chunk_bytes - at_ : a_.tile_bytes;
      for (step_ = 0; step_ < b_.n_steps;) {
        if (step_ == next_window_ || (step_ == 0 && window_start_ != 0)) fetch();
        const Step &st = window_[step_ - window_start_];
        if (!step(st)) return;
        step_ += 1 + st.join;
      }
    }
    leave();
  }

 private:
  // Flagged moves messages with flags.
  using Flagged = std::conditional_t<kProto == kLL, Packets<T, kOp>, Lines<T, kOp>>;

  // enter brings the block's table into shared memory and says how many messages were
  // taken in earlier launches.
  MSCCLSH_DEV void enter() {
    copy(reinterpret_cast<unsigned char *>(&b_), table_, a_.head_bytes);
    if (t_.id == 0) s_.claimed = 0;
    wait_for_earlier();
    let_next_start();  // after the wait, so that no more than one launch is ahead
    t_.sync();
    window_start_ = 0;
    next_window_ = a_.window;
    if (a_.rebases) rebase(b_.n_steps);
    for (int i = t_.id; i < b_.n_ends; i += t_.size) {
      End &e = ends_[i];
      e.first = *e.seq;
      e.limit = e.first;
      if (kProto == kDirect) continue;
      if (e.sends)
        e.limit = load_credit(e.mine) + a_.slots;
      else
        store_credit(e.theirs, e.first);
    }
    if (t_.id == t_.size - 1) s_.launch = *b_.launches << 32;
    t_.sync();
  }

  // leave writes back what the next launch goes on from.
  MSCCLSH_DEV void leave() {
    for (int i = t_.id; i < b_.n_ends; i += t_.size)
      *ends_[i].seq = ends_[i].first + ends_[i].per_tile * uint64_t(a_.tiles);
    if (t_.id == t_.size - 1) *b_.launches = (s_.launch >> 32) + 1;
  }

  MSCCLSH_DEV void copy(unsigned char *to, const unsigned char *from, uint32_t bytes) const {
    for (uint32_t i = 16 * t_.id; i < bytes; i += 16 * t_.size)
      *reinterpret_cast<Pair *>(to + i) = *reinterpret_cast<const Pair *>(from + i);
  }

  MSCCLSH_DEV uint32_t steps_at() const { return sizeof(Block) + a_.max_ends * sizeof(End); }

  // fetch brings the window of steps that holds step_.
  MSCCLSH_DEV void fetch() {
    t_.sync();
    int left = b_.n_steps - step_;
    copy(reinterpret_cast<unsigned char *>(window_), table_ + steps_at() + step_ * sizeof(Step),
         (left < a_.window ? left : a_.window) * sizeof(Step));
    window_start_ = step_;
    next_window_ = step_ + a_.window;
    if (a_.rebases) {
      t_.sync();
      rebase(left);
    }
    t_.sync();
  }

  // rebase is for steps of which so many are left. The last threads begin: the first ones
  // have connections to look after.
  MSCCLSH_DEV void rebase(int left) {
    rebase_steps(a_.bases, window_, uint32_t(left < a_.window ? left : a_.window),
                 t_.size - 1 - t_.id, t_.size);
  }

  // meet is a barrier. A thread whose message did not come goes on to it, so that all
  // leave together there.
  MSCCLSH_DEV bool meet() { return !t_.sync_or(!ok_); }

  MSCCLSH_DEV bool step(const Step &st) {
    const bool traced = a_.events && t_.id == 0;
    int64_t begin = 0;
    if (MSCCLSH_UNLIKELY(traced)) begin = now();
    if (MSCCLSH_UNLIKELY(st.deps > 0 || (st.flags & kMeet))) {
      if (st.deps > 0) {
        ok_ &= wait_deps(waiter(), b_.posted, deps_ + st.dep_start, st.deps);
        wrote_ = true;
      }
      if (!meet()) return false;
    }
    if (kProto == kDirect && (st.flags & (kIn | kOut))) {
      if (!rendezvous(st)) return false;
    } else {
      if (kProto == kDirect) wrote_ = true;
      int64_t off = at_;
      uint32_t m = 0;
      for (int32_t left = st.count; left > 0; left -= a_.regime, m++) {
        if (!pass(st, m, off, bytes_ * (left < a_.regime ? left : a_.regime))) return false;
        off += a_.regime * a_.chunk_bytes;
      }
    }
    const int32_t last = step_ + st.join;
    if (MSCCLSH_UNLIKELY(window_[last - window_start_].post)) {
      if (!meet()) return false;
      if (t_.id == 0) {
        const uint64_t done = uint64_t(tile_) * uint32_t(b_.n_steps) + uint32_t(last) + 1;
        store_release_device(&b_.posted[b_.tb], s_.launch + done);
      }
    }
    if (MSCCLSH_UNLIKELY(traced)) {
      const int64_t end = now();
      for (int32_t i = step_; i <= last; i++)
        a_.events[b_.first_event + uint64_t(tile_) * uint32_t(b_.n_steps) + uint32_t(i)] =
            Event{begin, end};
    }
    return true;
  }

  // waiter is this thread, to wait.
  MSCCLSH_DEV Waiter waiter() const { return {t_, &a_, &s_, ends_, uint64_t(tile_), step_}; }
  MSCCLSH_DEV uint64_t in_number(const Step &s, uint32_t m) const {
    return waiter().in_number(s, m);
  }
  MSCCLSH_DEV uint64_t out_number(const Step &s, uint32_t m) const {
    return waiter().out_number(s, m);
  }

  MSCCLSH_DEV static unsigned char *plus(unsigned char *p, int64_t off) {
    return p ? p + off : nullptr;
  }

  // pass moves message m of a step: bytes bytes, off bytes into the step's places.
  MSCCLSH_DEV bool pass(const Step &st, uint32_t m, int64_t off, int64_t bytes) {
    if (MSCCLSH_UNLIKELY(st.join > 0)) return pass_joined(st, off, bytes);
    Message msg;
    msg.x = plus(st.x, off);
    msg.y = plus(st.y, off);
    msg.dst = plus(st.dst, off);
    msg.bytes = bytes;
    uint64_t n_in = 0, n_out = 0;
    bool wait = false, credit = false;
    if (st.flags & kIn) {
      const End &e = ends_[st.in];
      n_in = in_number(st, m);
      msg.in = slot_of<kProto>(a_, e, n_in);
      wait = kProto == kSimple && n_in >= e.limit;
      credit = gives_credit(e, n_in);
    }
    if (st.flags & kOut) {
      const End &e = ends_[st.out];
      n_out = out_number(st, m);
      msg.out = slot_of<kProto>(a_, e, n_out);
      wait |= n_out >= e.limit;
    }
    if (MSCCLSH_UNLIKELY(wait) && !await_ends(&st, m)) return false;
    if (kProto != kSimple && kProto != kDirect && MSCCLSH_UNLIKELY(st.flags & kStrict)) {
      if (!move_strictly(msg, st, m)) return false;
    } else {
      move(msg, st, m);
    }
    const bool sent = kProto == kSimple && (st.flags & kOut);
    if (kProto != kSimple && MSCCLSH_LIKELY(!credit)) return true;
    if (!sent && !credit) return true;
    if (!meet()) return false;
    if (sent && t_.id == 0) {
      release_system();
      store_relaxed_system(ends_[st.out].theirs, n_out + 1);
    }
    if (credit && t_.id == other()) store_credit(ends_[st.in].theirs, n_in + 1);
    return true;
  }

  // Group counts the steps that have joined one: n_in that add something, and n_out that
  // send, from first_out on.
  struct Group {
    int n_in, first_out, n_out;
  };
  MSCCLSH_DEV static Group group(const Step *st) {
    const Group g{st->join_in, st->join_out, st->join - st->join_out};
    return g;
  }

  // pass_joined moves the one message of a step and of those that have joined it.
  MSCCLSH_DEV bool pass_joined(const Step &st, int64_t off, int64_t bytes) {
    bool wait = false, sent = false, credit = false;
    MSCCLSH_ROLLED
    for (int i = 0; i <= st.join; i++) {
      const Step &s = (&st)[i];
      wait |= waits_in(s, 0) || waits_out(s, 0);
      sent |= kProto == kSimple && (s.flags & kOut);
      credit |= (s.flags & kIn) && gives_credit(ends_[s.in], in_number(s, 0));
    }
    if (wait && !await_ends(&st, 0)) return false;
    const Group g = group(&st);
    Message msg;
    msg.x = plus(st.x, off);
    msg.y = plus(st.y, off);
    msg.dst = plus(st.dst, off);
    msg.bytes = bytes;
    if (st.flags & kIn) msg.in = slot_of<kProto>(a_, ends_[st.in], in_number(st, 0));
    if (st.flags & kOut) msg.out = slot_of<kProto>(a_, ends_[st.out], out_number(st, 0));
    move_joined(
        msg, Joined<kProto>{a_, ends_, &st + 1, g.n_in, g.first_out, g.n_out, off, uint64_t(tile_)},
        st);
    if (!sent && !credit) return true;
    if (!meet()) return false;
    if (sent && t_.id == 0) {
      release_system();
      MSCCLSH_ROLLED
      for (int i = 0; i <= st.join; i++)
        if ((&st)[i].flags & kOut)
          store_relaxed_system(ends_[(&st)[i].out].theirs, out_number((&st)[i], 0) + 1);
    }
    if (credit && t_.id == other()) {
      MSCCLSH_ROLLED
      for (int i = 0; i <= st.join; i++) {
        const Step &s = (&st)[i];
        if ((s.flags & kIn) && gives_credit(ends_[s.in], in_number(s, 0)))
          store_credit(ends_[s.in].theirs, in_number(s, 0) + 1);
      }
    }
    return true;
  }

  // move moves a message alone, move_joined with the steps that have joined it.
  MSCCLSH_DEV void move(const Message &msg, const Step &st, uint32_t m) {
    if (MSCCLSH_UNLIKELY(!ok_)) return;
    const Vectors<T, kOp> vectors(t_, a_);
    if (kProto == kSimple) {
      vectors.move(msg, Nobody(), 16);
    } else if (MSCCLSH_UNLIKELY(kProto == kDirect || !(msg.in.at || msg.out.at))) {
      move_apart(vectors, msg, Nobody(), 16);
    } else {
      // Called, so that its registers come on top of few.
      const int32_t cause = flagged_apart(Flagged(t_, a_), msg, Nobody());
      if (MSCCLSH_UNLIKELY(cause != 0)) missed(cause, &st, m);
    }
  }

  // move_strictly moves a message so that messages order what its thread block does as
  // they do with Simple; see kStrict.
  MSCCLSH_DEV bool move_strictly(Message msg, const Step &st, uint32_t m) {
    if (!settle()) return false;
    if (st.flags & kIn) {
      const int32_t cause = arrive_apart(Flagged(t_, a_), msg.in, msg.bytes);
      if (cause != 0) missed(cause, &st, m);
      if (!settle()) return false;
    }
    if ((st.flags & kIn) && (st.flags & kOut) && msg.dst) {
      Message sends = msg;
      msg.out = Slot();
      move(msg, st, m);
      if (!settle()) return false;
      sends.x = msg.dst;
      sends.y = sends.dst = nullptr;
      sends.in = Slot();
      msg = sends;
    }
    move(msg, st, m);
    return settle();
  }

  // settle is a barrier before which all that the block did is there for others, and after
  // which what others did is for it.
  MSCCLSH_DEV bool settle() {
    release_system();
    return meet();
  }

  MSCCLSH_DEV void move_joined(const Message &msg, const Joined<kProto> &joined, const Step &st) {
    if (MSCCLSH_UNLIKELY(!ok_)) return;
    int32_t cause = 0;
    if (kProto == kLL || kProto == kLL128)
      cause = flagged_apart(Flagged(t_, a_), msg, joined);
    else
      move_apart(Vectors<T, kOp>(t_, a_), msg, joined, 16);
    if (MSCCLSH_UNLIKELY(cause != 0)) missed(cause, &st, 0);
  }

  // missed reports a message that did not come. Which of several it was is not known; the
  // first stands for all.
  MSCCLSH_DEV void missed(int32_t cause, const Step *s, uint32_t m) {
    while (!(s->flags & kIn)) s++;
    no_message(waiter(), cause, s->in, in_number(*s, m) + 1);
    ok_ = false;
  }

  // gives_credit says whether the sender is told that message n was taken: not each time,
  // since a store that reaches the peer late holds up the end of the launch.
  MSCCLSH_DEV bool gives_credit(const End &e, uint64_t n) const {
    return ((n + 1 - e.first) & uint32_t(a_.withheld - 1)) == 0;
  }

  // await_ends waits for slots and messages. Limits are written between two barriers, so
  // that all threads see the same.
  MSCCLSH_DEV bool await_ends(const Step *st, uint32_t m) {
    ok_ &= wait_ends(waiter(), st, m, kProto == kSimple);
    if (!meet()) return false;
    saw_ends(waiter(), st, m, kProto == kSimple);
    return meet();
  }
  MSCCLSH_DEV bool waits_in(const Step &s, uint32_t m) const {
    return kProto == kSimple && (s.flags & kIn) && in_number(s, m) >= ends_[s.in].limit;
  }
  MSCCLSH_DEV bool waits_out(const Step &s, uint32_t m) const {
    return (s.flags & kOut) && out_number(s, m) >= ends_[s.out].limit;
  }

  // rendezvous does a step of a Direct program, and those that have joined it, by
  // docs/direct.md.
  MSCCLSH_DEV bool rendezvous(const Step &st) {
    const int n = 1 + st.join;
    if (!arrive(&st, n)) return false;
    bool waits = false, moves = false;
    MSCCLSH_ROLLED
    for (int i = 0; i < n; i++) {
      const Step &s = (&st)[i];
      waits |= (s.flags & kIn) || s.out_way == kPush;
      moves |= s.in_way == kPull || s.out_way == kPush;
    }
    if (waits) {
      const Waiter me = waiter();
      MSCCLSH_ROLLED
      for (int i = 0; i < n; i++) {
        const Step &s = (&st)[i];
        if (s.out_way == kPush && me.is_waiter(2 * i))
          ok_ &= wait_peer(me, s.out, out_number(s, 0) + 1, 4);
        if ((s.flags & kIn) && me.is_waiter(2 * i + 1))
          ok_ &= wait_peer(me, s.in, in_number(s, 0) + 1, 2);
      }
      wrote_ = true;
      if (!meet()) return false;
    }
    if (moves) {
      exchange(st, n);
      wrote_ = true;
      if (!meet()) return false;
    }
    return depart(&st, n);
  }

  // exchange reads and writes what lies at the peers.
  MSCCLSH_DEV void exchange(const Step &st, int n) {
    Message msg;
    uintptr_t far = 0;
    if (st.in_way == kPull) {
      msg.x = nullptr;
      msg.in.at = st.x + at_;
      far |= uintptr_t(msg.in.at);
    } else {
      msg.x = (st.kind == kRcs ? st.dst : st.x) + at_;
    }
    msg.y = plus(st.y, at_);
    msg.dst = st.kind == kRcs ? nullptr : plus(st.dst, at_);
    msg.bytes = bytes_ * st.count;
    if (st.out_way == kPush) {
      msg.out.at = st.far + at_;
      far |= uintptr_t(msg.out.at);
    }
    const Vectors<T, kOp> vectors(t_, a_);
    if (MSCCLSH_LIKELY(n == 1)) {
      vectors.move(msg, Nobody(), (far & 15) == 0 ? 16 : 1);
      return;
    }
    const Group g = group(&st);
    MSCCLSH_ROLLED
    for (int i = 1; i < n; i++) far |= uintptr_t((i <= g.n_in ? (&st)[i].x : (&st)[i].far) + at_);
    move_apart(
        vectors, msg,
        Joined<kProto>{a_, ends_, &st + 1, g.n_in, g.first_out, g.n_out, at_, uint64_t(tile_)},
        (far & 15) == 0 ? 16 : 1);
  }

  // arrive says which memory of this rank may be read or written now.
  MSCCLSH_DEV bool arrive(const Step *st, int n) {
    bool says = false;
    MSCCLSH_ROLLED
    for (int i = 0; i < n; i++)
      says |= (st[i].kind == kSend && (st[i].out_way == kPull || (st[i].flags & kExchange))) ||
              (st[i].in_way == kPush && !(st[i].flags & kArrived));
    if (!says) return true;
    if (wrote_ && !meet()) return false;
    if (t_.id != 0) return true;
    if (wrote_) release_system();
    MSCCLSH_ROLLED
    for (int i = 0; i < n; i++) {
      const Step &s = st[i];
      if (s.kind == kSend && s.out_way == kPull)
        store_relaxed_system(ends_[s.out].theirs, out_number(s, 0) + 1);
      // The receive of an exchange stands in the send's place.
      if ((s.in_way == kPush && !(s.flags & kArrived)) || (s.flags & kExchange))
        store_relaxed_system(ends_[s.in].theirs, in_number(s, 0) + 1);
    }
    return true;
  }

  // depart says what has been written, waits until this rank's memory has been read, and
  // says what has been read: the sender of a pull ends no earlier than this step.
  MSCCLSH_DEV bool depart(const Step *st, int n) {
    bool wait = false, fence = false;
    MSCCLSH_ROLLED
    for (int i = 0; i < n; i++) {
      wait |= st[i].out_way == kPull;
      fence |= st[i].out_way == kPush || (st[i].out_way == kPull && st[i].kind != kSend);
    }
    if (fence && t_.id == 0) {
      release_system();
      MSCCLSH_ROLLED
      for (int i = 0; i < n; i++)
        if (st[i].out_way == kPush || (st[i].out_way == kPull && st[i].kind != kSend))
          store_relaxed_system(ends_[st[i].out].theirs, out_number(st[i], 0) + 1);
    }
    if (wait) {
      const Waiter me = waiter();
      MSCCLSH_ROLLED
      for (int i = 0; i < n; i++)
        if (st[i].out_way == kPull && me.is_waiter(i))
          ok_ &= wait_peer(me, st[i].out, out_number(st[i], 0) + 1, 4);
      if (!meet()) return false;
    }
    if (t_.id == 0) {
      MSCCLSH_ROLLED
      for (int i = 0; i < n; i++)
        if (st[i].in_way == kPull)
          store_relaxed_system(ends_[st[i].in].theirs, in_number(st[i], 0) + 1);
    }
    return true;
  }

  // other is a thread of another warp than thread 0's, where there is one.
  MSCCLSH_DEV uint32_t other() const { return t_.size > kWarp ? kWarp : 0; }

  const Thread t_;
  const Args &a_;
  Shared &s_;
  Block &b_;
  const unsigned char *table_;
  End *ends_;
  const Dep *deps_;
  Step *window_;
  int64_t tile_ = 0;
  int64_t at_ = 0, bytes_ = 0;  // of the tile: its start in a chunk, its length
  int32_t step_ = 0, window_start_ = 0, next_window_ = 0;
  bool ok_ = true;      // of this thread: nothing it waited for has failed to come
  bool wrote_ = false;  // Direct: the block may have memory accesses that peers don't know of
};

}  // namespace mscclsh

#endif
