// The interpreter of short one-sided programs, of packets alone. It does the same as
// OneInterpreter where prepare finds a launch quick: operations on packets, of 8 bytes and in
// aligned places, and barriers of a block's threads, whose tables lie in shared memory; no
// pipeline, no counter, no port, no trace.
//
// While the first warp brings the block's table the second rehearses.
#ifndef MSCCLSH_ONE_QUICK_H
#define MSCCLSH_ONE_QUICK_H

#include "one_move.h"
#include "rebase.h"

namespace mscclsh {

// kOneQuick is the longest table of such a launch, bytes: one warp brings it.
constexpr uint32_t kOneQuick = 4 << 10;

// OneRehearsal is what the second warp goes through without effect: an operation for packets one
// after another, and one for several at once, of no bytes.
struct alignas(16) OneRehearsal {
  OneOp ops[2];
  OneArea areas[6];
};

template <class T, Op kOp>
class OneQuick {
 public:
  MSCCLSH_DEV OneQuick(const Thread &t, const Args &a, unsigned char *shared)
      : t_(t), a_(a), s_(*reinterpret_cast<Shared *>(shared)) {
    b_ = reinterpret_cast<OneBlock *>(shared + sizeof(Shared));
    rehearsal_ = reinterpret_cast<OneRehearsal *>(shared + sizeof(Shared) + a.head_bytes);
  }

  MSCCLSH_DEV void run() {
    for (bool dry = t_.id / kWarp == 1;; dry = false) {
      const OneOp *op;
      int32_t n;
      if (dry) {
        make_rehearsal();
        op = rehearsal_->ops;
        areas_ = rehearsal_->areas;
        n = 2;
      } else {
        if (t_.id < kWarp) enter();
        t_.sync();
        launch_ = s_.launch;
        const unsigned char *table = reinterpret_cast<const unsigned char *>(b_);
        op = reinterpret_cast<const OneOp *>(table + sizeof(OneBlock));
        areas_ = reinterpret_cast<const OneArea *>(table + b_->areas_at);
        n = b_->n_ops;
      }
      MSCCLSH_ROLLED
      for (; n > 0; n--, op++) {
        if (MSCCLSH_UNLIKELY(op->does == kOneMeet)) {
          if (t_.sync_or(!ok_)) return;
          continue;
        }
        MSCCLSH_ROLLED
        for (uint32_t i = 0; ok_ && i < op->n_lanes; i++) move(*op, i);
      }
      if (!dry) return;
    }
  }

 private:
  // make_rehearsal makes operations that go through all that others do. One that the launch
  // doesn't want has no lane.
  MSCCLSH_DEV void make_rehearsal() {
    const uint32_t lane = t_.id % kWarp;
    for (uint32_t i = lane; i < 6; i += kWarp) {
      OneArea &a = rehearsal_->areas[i];
      a.at = reinterpret_cast<unsigned char *>(b_);
      a.half = 0;
      a.bytes = 0;
      a.packets = i != 3 && i != 4;  // three sources, then the own; written are both kinds
    }
    for (uint32_t i = lane; i < 2; i += kWarp) {
      OneOp &op = rehearsal_->ops[i];
      op.does = kOnePackets;
      op.op = 0;
      op.flags = i == 1 ? kOneMany : 0;
      op.index = 0;
      op.first_area = 0;
      op.n_lanes = a_.wants >> i & 1;
      op.n_reads = 4;
      op.n_writes = 2;
    }
    t_.sync_warp();
  }

  // enter brings the block's table into shared memory, and says and keeps how many launches
  // there were.
  MSCCLSH_DEV void enter() {
    const unsigned char *table = a_.blocks + t_.block * a_.block_bytes;
    unsigned char *head = reinterpret_cast<unsigned char *>(b_);
    for (uint32_t i = 16 * t_.id; i < a_.head_bytes; i += 16 * kWarp)
      *reinterpret_cast<Pair *>(head + i) = load16(table + i);
    if (t_.id == 0) s_.claimed = 0;
    t_.sync_warp();
    if (a_.rebases) {
      OneArea *areas = reinterpret_cast<OneArea *>(head + b_->areas_at);
      const uint32_t n = (b_->refs_at - b_->areas_at) / uint32_t(sizeof(OneArea));
      MSCCLSH_ROLLED
      for (uint32_t i = t_.id; i < n; i += kWarp) areas[i].at = rebased(a_.bases, areas[i].at);
    }
    wait_for_earlier();
    let_next_start();  // after the wait, so that no more than one launch is ahead
    if (t_.id != 0) return;
    const uint64_t launch = load8(a_.launches + t_.block);
    s_.launch = launch;
    store8(a_.launches + t_.block, launch + 1);
  }

  // move does a lane of an operation.
  MSCCLSH_DEV void move(const OneOp &op, uint32_t i) {
    Lane l;
    l.areas = areas_ + op.first_area + i * (op.n_reads + op.n_writes);
    l.n_reads = op.n_reads;
    l.n_writes = op.n_writes;
    l.odd = uint32_t(launch_) & 1;
    l.flag = uint32_t(launch_ & a_.flag_mask) + 1;
    l.op = op.op;
    l.at = 0;
    l.bytes = l.areas[0].bytes;
    const LaneMover<T, kOp> mover{t_, a_};
    Spin spin;
    ok_ = (op.flags & kOneMany) ? mover.many(l, spin) : mover.packets(l, spin);
    if (MSCCLSH_LIKELY(ok_)) return;
    Waiter{t_, &a_, &s_, nullptr, 0, int32_t(op.index)}.give_up(spin.cause, 8, -1, -1, l.flag, 0);
  }

  const Thread t_;
  const Args &a_;
  Shared &s_;
  OneBlock *b_;
  OneRehearsal *rehearsal_;
  const OneArea *areas_ = nullptr;
  uint64_t launch_ = 0;
  bool ok_ = true;  // of this thread: nothing it waited for has failed to come
};

}  // namespace mscclsh

#endif
