// The interpreter of one-sided programs: what one block does with its operations.
#ifndef MSCCLSH_ONE_INTERPRET_H
#define MSCCLSH_ONE_INTERPRET_H

#include "one_move.h"
#include "rebase.h"

namespace mscclsh {

// Counting up, and waiting for counters, in functions of their own.

// one_give makes a counter what this turn of an operation makes it.
MSCCLSH_COLD void one_give(const OneRef *r, uint64_t launch, uint64_t turn) {
  const uint64_t v = launch * r->per_launch + uint64_t(r->before) + turn * r->per_turn;
  if (r->flags & kOneDevice) {
    count_release_device(r->at, 1);
    return;
  }
  if (!(r->flags & kOneRelaxed)) release_system();
  if (r->flags & kOneAdd)
    count_relaxed_system(r->at, 1);
  else
    store_relaxed_system(r->at, v);
}

// one_goal is what a counter must have come to.
MSCCLSH_DEV uint64_t one_goal(const OneRef &r, uint64_t launch, uint64_t turn) {
  uint64_t n = uint64_t(r.before);
  if (r.flags & kOneTicket)
    n += add_relaxed_device(r.tickets, 1) - launch * r.drawn;
  else
    n += turn * r.per_turn;
  if (r.parts > 1) n = (n + r.parts - 1) / r.parts * r.parts;
  return launch * r.per_launch + n;
}

// one_wait waits until a counter has come to goal.
MSCCLSH_COLD bool one_wait(Waiter w, const OneRef *r, uint64_t goal, int32_t waits_for) {
  uint64_t have;
  Spin spin;
  for (;;) {
    if (r->flags & kOneDevice)
      have = load_acquire_device(r->at);
    else if (r->flags & kOneRelaxed)
      have = load_credit(r->at);
    else
      have = load_acquire_system(r->at);
    if (int64_t(have - goal) >= 0) return true;
    if (!spin.go_on(*w.a)) return w.give_up(spin.cause, waits_for, r->peer, r->chan, goal, have);
  }
}

// one_push puts a request into a rank's queue; it returns its number, plus 1, or 0 when
// there came no room for it.
MSCCLSH_COLD uint64_t one_push(Waiter w, const PortView *port, PortWish wish, const OneRef *r) {
  const uint64_t n = add_relaxed_device(port->made, 1);
  uint64_t have;
  Spin spin;
  while (n >= (have = load_acquire_system(port->taken)) + kPortDepth)
    if (!spin.go_on(*w.a)) {
      w.give_up(spin.cause, 9, r->peer, r->chan, n + 1 - kPortDepth, have);
      return 0;
    }
  PortRequest &to = port->requests[n % kPortDepth];
  to.wish = wish;
  release_system();
  store_relaxed_system(&to.turn, n + 1);
  return n + 1;
}

// one_adopt makes a table, of which lists is what the operations stand in, that of a launch of
// a bound call: its areas get the places that the launch brings, and its counters go on from
// where the launches of whatever sizes have left them. Threads meet after it.
MSCCLSH_DEV void one_adopt(const Thread &t, const Args &a, const OneBlock &b,
                           unsigned char *lists) {
  OneArea *areas = reinterpret_cast<OneArea *>(lists + b.areas_at);
  const uint32_t n_areas = (b.refs_at - b.areas_at) / uint32_t(sizeof(OneArea));
  MSCCLSH_ROLLED
  for (uint32_t i = t.id; i < n_areas; i += t.size) areas[i].at = rebased(a.bases, areas[i].at);
  if (b.n_sums == 0) return;
  OneRef *refs = reinterpret_cast<OneRef *>(lists + b.refs_at);
  const uint32_t n_refs = (b.sums_at - b.refs_at) / uint32_t(sizeof(OneRef));
  MSCCLSH_ROLLED
  for (uint32_t i = t.id; i < n_refs; i += t.size) {
    OneRef &r = refs[i];
    if (r.flags & kOnePlaced) continue;
    const OneSum &s = b.sums[r.index];
    uint64_t before = load_credit(&s.given);
    if ((r.flags & kOneTicket) && r.parts <= 1) before -= load_credit(&s.drawn);
    r.before += int64_t(before);
  }
}

template <class T, Op kOp>
class OneInterpreter {
 public:
  MSCCLSH_DEV OneInterpreter(const Thread &t, const Args &a, unsigned char *shared)
      : t_(t), a_(a), s_(*reinterpret_cast<Shared *>(shared)) {
    table_ = const_cast<unsigned char *>(a.blocks) + t.block * a.block_bytes;
    unsigned char *head = shared + sizeof(Shared);
    b_ = reinterpret_cast<OneBlock *>(head);
    lists_ = a.head_bytes > sizeof(OneBlock) ? head : table_;
  }

  // run goes through the operations. Those of a pipeline stand behind it, from body_ to
  // end_, and are gone through once for each unit of bytes.
  MSCCLSH_DEV void run() {
    enter();
    int32_t i = 0;
    while (i < b_->n_ops) {
      const OneOp &op = ops_[i++];
      if (MSCCLSH_UNLIKELY(op.does == kOnePipeline)) {
        begin_ = i;
        end_ = i + int32_t(op.body);
        turns_ = op.turns;
        unit_ = op.unit;
        if (turns_ > 0 && op.body > 0) continue;
        i = end_;
      } else if (!step(op)) {
        return;
      }
      if (MSCCLSH_UNLIKELY(i == end_)) i = next_turn();
    }
    leave();
  }

 private:
  using Mover = LaneMover<T, kOp>;

  // enter brings the block's table into shared memory, and a table that changes from launch to
  // launch, where that has no room, elsewhere into the device's.
  MSCCLSH_DEV void enter() {
    unsigned char *to = reinterpret_cast<unsigned char *>(b_);
    for (uint32_t i = 16 * t_.id; i < a_.head_bytes; i += 16 * t_.size)
      *reinterpret_cast<Pair *>(to + i) = *reinterpret_cast<const Pair *>(table_ + i);
    if (t_.id == 0) s_.claimed = 0;
    wait_for_earlier();
    let_next_start();  // after the wait, so that no more than one launch is ahead
    launch_ = load_credit(a_.launches + t_.block);
    t_.sync();
    if (MSCCLSH_UNLIKELY(a_.rebases)) {
      if (MSCCLSH_UNLIKELY(b_->copy_at != 0)) move_lists();
      one_adopt(t_, a_, *b_, lists_);
      t_.sync();
    }
    ops_ = reinterpret_cast<const OneOp *>(lists_ + sizeof(OneBlock));
    areas_ = reinterpret_cast<const OneArea *>(lists_ + b_->areas_at);
    refs_ = reinterpret_cast<const OneRef *>(lists_ + b_->refs_at);
  }

  // move_lists copies what is too long for shared memory to where it may be changed. The
  // launch before may have read that place until now.
  MSCCLSH_DEV void move_lists() {
    unsigned char *to = table_ + b_->copy_at;
    const uint32_t end = b_->sums_at + b_->n_sums * uint32_t(sizeof(OneSum));
    for (uint32_t i = 16 * t_.id; i < end; i += 16 * t_.size)
      *reinterpret_cast<Pair *>(to + i) = *reinterpret_cast<const Pair *>(table_ + i);
    lists_ = to;
    t_.sync();
  }

  // leave waits until what went to ports has arrived, and writes back what the next launch
  // goes on from.
  MSCCLSH_DEV void leave() {
    for (uint32_t i = t_.id; i < b_->n_sums; i += t_.size) {
      const OneSum &add = reinterpret_cast<const OneSum *>(lists_ + b_->sums_at)[i];
      OneSum &to = b_->sums[i];
      store_credit(&to.given, load_credit(&to.given) + add.given);
      store_credit(&to.drawn, load_credit(&to.drawn) + add.drawn);
    }
    if (t_.id != 0) return;
    if (MSCCLSH_UNLIKELY(given_)) {
      for (uint32_t i = 0; i < b_->n_drain; i++)
        if (!flush(refs_[b_->first_drain + i])) return;
    }
    store_credit(a_.launches + t_.block, launch_ + 1);
  }

  // next_turn ends a turn of a pipeline and returns the operation that comes next.
  MSCCLSH_DEV int32_t next_turn() {
    if (++turn_ < turns_) {
      at_ += unit_;
      return begin_;
    }
    const int32_t next = end_;
    turn_ = at_ = 0;
    turns_ = 0;
    unit_ = kAll;
    end_ = -1;
    return next;
  }

  // meet is a barrier. A thread that waited in vain goes on to it, so that all leave
  // together there.
  MSCCLSH_DEV bool meet() { return !t_.sync_or(!ok_); }

  MSCCLSH_DEV bool step(const OneOp &op) {
    const bool traced = a_.events && t_.id == 0;
    int64_t begin = 0;
    if (MSCCLSH_UNLIKELY(traced)) begin = now();
    index_ = int32_t(op.index);
    switch (op.does) {
      case kOneMeet:
        if (!meet()) return false;
        break;
      case kOneBarrier:
        if (!barrier(op)) return false;
        break;
      case kOneGive:
        if (ok_)
          for (uint32_t i = t_.id; i < op.n_refs; i += t_.size)
            one_give(&refs_[op.first_ref + i], launch_, uint64_t(turn_));
        break;
      case kOneTake:
        for (uint32_t i = t_.id; ok_ && i < op.n_refs; i += t_.size) {
          const OneRef &r = refs_[op.first_ref + i];
          ok_ = one_wait(waiter(), &r, one_goal(r, launch_, uint64_t(turn_)), op.scope);
        }
        break;
      case kOnePort:
        if (!port(op)) return false;
        break;
      default:
        for (uint32_t i = 0; ok_ && i < op.n_lanes; i++) move(op, lane(op, i));
    }
    if (MSCCLSH_UNLIKELY(traced)) a_.events[b_->first_event + events_++] = Event{begin, now()};
    return true;
  }

  MSCCLSH_DEV Waiter waiter() const { return {t_, &a_, &s_, nullptr, uint64_t(turn_), index_}; }

  // lane is a lane of an operation, as far as this turn goes.
  MSCCLSH_DEV Lane lane(const OneOp &op, uint32_t i) const {
    Lane l;
    l.areas = areas_ + op.first_area + i * (op.n_reads + op.n_writes);
    l.n_reads = op.n_reads;
    l.n_writes = op.n_writes;
    l.odd = uint32_t(launch_) & 1;
    l.flag = uint32_t(launch_ & a_.flag_mask) + 1;
    l.op = op.op;
    const int64_t all = l.areas[0].bytes;
    l.at = at_ < all ? at_ : all;
    l.bytes = all - l.at < unit_ ? all - l.at : unit_;
    return l;
  }

  MSCCLSH_DEV void move(const OneOp &op, const Lane &l) {
    const Mover mover{t_, a_};
    if (op.does == kOnePlain) {
      plain_apart(mover, l);
      return;
    }
    int32_t cause = 0;
    if (MSCCLSH_UNLIKELY((op.flags & kOneSmall) || !Mover::aligned(l, 8)))
      cause = slowly_apart(mover, l, (op.flags & kOneSmall) ? 4 : 8);
    else if (op.flags & kOneMany)
      cause = many_apart(mover, l);
    else
      cause = packets_apart(mover, l);
    if (MSCCLSH_UNLIKELY(cause != 0)) ok_ = waiter().give_up(cause, 8, -1, -1, l.flag, 0);
  }

  // barrier lets the threads meet, then blocks of the rank, then the threads.
  MSCCLSH_DEV bool barrier(const OneOp &op) {
    if (!meet()) return false;
    if (t_.id == 0) {
      const OneRef &r = refs_[op.first_ref];
      uint64_t goal;
      if (r.flags & kOneTicket) {
        const uint64_t n = add_release_device(r.at, 1) + 1 - launch_ * r.per_launch;
        goal = launch_ * r.per_launch + (n + r.parts - 1) / r.parts * r.parts;
      } else {
        goal = one_goal(r, launch_, uint64_t(turn_));
        count_release_device(r.at, 1);
      }
      ok_ = one_wait(waiter(), &r, goal, op.scope);
    }
    return meet();
  }

  // port has the host's thread copy lanes and give signals. One thread asks for it all, so
  // that it is done in this order.
  MSCCLSH_DEV bool port(const OneOp &op) {
    if (op.flags & kOneAwait) {
      for (uint32_t i = 0; ok_ && i < op.n_lanes; i++) {
        Lane l = lane(op, i);
        l.n_writes = 0;
        move_await(op, l);
      }
      if (!meet()) return false;
    }
    if (t_.id != 0 || !ok_) return true;
    const uint32_t what = (op.n_lanes > 0 ? uint32_t(kPortPut) : 0u) |
                          ((op.flags & kOneSignal) ? uint32_t(kPortSignal) : 0u);
    for (uint32_t i = 0; i < op.n_refs && what != 0; i++) {
      PortWish q = {};
      const OneRef &r = refs_[op.first_ref + i];
      q.port = r.index;
      q.what = what;
      if (op.n_lanes > 0) {
        const Lane l = lane(op, i);
        q.src = reinterpret_cast<uintptr_t>(l.place(0));
        q.dst = reinterpret_cast<uintptr_t>(l.place(1));
        q.bytes = uint64_t(l.bytes) * ((op.flags & kOneRaw) ? 2 : 1);
      }
      ok_ = one_push(waiter(), &b_->port, q, &r) != 0;
      given_ = true;
      if (!ok_) return true;
    }
    for (uint32_t i = 0; ok_ && (op.flags & kOneFlush) && i < op.n_refs; i++)
      ok_ = flush(refs_[op.first_ref + i]);
    return true;
  }

  // move_await waits for the packets of a lane that the host is to copy.
  MSCCLSH_DEV void move_await(const OneOp &op, const Lane &l) {
    const int32_t cause = slowly_apart(Mover{t_, a_}, l, (op.flags & kOneSmall) ? 4 : 8);
    if (cause != 0) ok_ = waiter().give_up(cause, 8, -1, -1, l.flag, 0);
  }

  // flush waits until what one channel was given so far has arrived.
  MSCCLSH_DEV bool flush(const OneRef &r) {
    PortWish q = {};
    q.port = r.index;
    q.what = kPortFlush;
    const uint64_t n = one_push(waiter(), &b_->port, q, &r);
    return n != 0 && one_wait(waiter(), &r, n, 9);
  }

  static constexpr int64_t kAll = int64_t(1) << 62;

  const Thread t_;
  const Args &a_;
  Shared &s_;
  OneBlock *b_;
  unsigned char *table_, *lists_;
  const OneOp *ops_;
  const OneArea *areas_ = nullptr;
  const OneRef *refs_ = nullptr;
  uint64_t launch_ = 0, events_ = 0;
  int64_t turn_ = 0, turns_ = 0;
  int64_t at_ = 0, unit_ = kAll;  // what this turn of a pipeline is about, bytes
  int32_t begin_ = 0, end_ = -1;  // the pipeline's operations
  int32_t index_ = 0;
  bool ok_ = true;      // of this thread: nothing it waited for has failed to come
  bool given_ = false;  // of thread 0: it asked the host for something
};

}  // namespace mscclsh

#endif
