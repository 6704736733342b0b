// The interpreter: what one block does with its steps.
#ifndef MSCCLSH_INTERPRET_H
#define MSCCLSH_INTERPRET_H

#include "move.h"

namespace mscclsh {

// Protocol is numbered like ir.Protocol.
enum Protocol : int32_t { kSimple, kLL, kLL128, kProtocols };

// Shared is the block's shared memory; the head of its table follows it.
struct alignas(16) Shared {
  uint64_t launch;   // number of this launch, shifted into place
  uint32_t claimed;  // somebody has written the block's record
  uint32_t dead;     // an earlier launch was cut short
};

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
    if (!enter()) return;
    for (tile_ = 0; tile_ < a_.tiles; tile_++) {
      for (step_ = 0; step_ < b_.n_steps; step_++) {
        if (step_ == next_window_ || (step_ == 0 && window_start_ != 0)) fetch();
        if (!step(window_[step_ - window_start_])) return;
      }
    }
    leave();
  }

 private:
  // enter brings the block's table into shared memory.
  MSCCLSH_DEV bool enter() {
    copy(reinterpret_cast<unsigned char *>(&b_), table_, a_.head_bytes);
    if (t_.id == 0) {
      s_.claimed = 0;
      s_.dead = load_flag(a_.dead);
    }
    t_.sync();
    window_start_ = 0;
    next_window_ = a_.window;
    if (s_.dead) return false;
    for (int i = t_.id; i < b_.n_ends; i += t_.size) {
      End &e = ends_[i];
      e.first = *e.seq;
      e.limit = e.sends ? load_credit(e.mine) + a_.slots : e.first;
    }
    if (t_.id == t_.size - 1) s_.launch = *b_.launches << 32;
    t_.sync();
    return true;
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
    t_.sync();
  }

  MSCCLSH_DEV bool step(const Step &st) {
    int64_t begin = a_.events && t_.id == 0 ? now() : 0;
    if (st.deps > 0 && t_.sync_or(!wait_deps(st))) return false;
    const int64_t at = tile_ * a_.tile_bytes, left = a_.chunk_bytes - at;
    const int64_t bytes = left < a_.tile_bytes ? left : a_.tile_bytes;
    uint32_t m = 0;
    for (int32_t c = 0; c < st.count; c += a_.regime, m++) {
      int32_t chunks = st.count - c < a_.regime ? st.count - c : a_.regime;
      if (!message(st, m, c * a_.chunk_bytes + at, bytes * chunks)) return false;
    }
    if (st.post && t_.id == 0) {
      uint64_t done = uint64_t(tile_) * uint32_t(b_.n_steps) + uint32_t(step_) + 1;
      store_release_device(&b_.posted[b_.tb], s_.launch + done);
    }
    if (a_.events && t_.id == 0)
      a_.events[b_.first_event + uint64_t(tile_) * uint32_t(b_.n_steps) + uint32_t(step_)] =
          Event{begin, now()};
    return true;
  }

  MSCCLSH_DEV bool wait_deps(const Step &st) {
    for (uint32_t i = t_.id; i < st.deps; i += t_.size) {
      const Dep &d = deps_[st.dep_start + i];
      uint64_t want = s_.launch + uint64_t(tile_) * d.steps + d.step + 1, have;
      Spin spin;
      while (int64_t((have = load_acquire_device(&b_.posted[d.tb])) - want) < 0)
        if (!spin.go_on(a_))
          return give_up(spin, 1, int32_t(d.tb), -1, progress(want), progress(have));
    }
    return true;
  }

  // progress is a posted value's part of this launch.
  MSCCLSH_DEV uint64_t progress(uint64_t v) const {
    return int64_t(v - s_.launch) < 0 ? 0 : v - s_.launch;
  }

  // message does message m of a step: bytes bytes, off bytes into the step's places.
  MSCCLSH_DEV bool message(const Step &st, uint32_t m, int64_t off, int64_t bytes) {
    const uint8_t kind = st.kind;
    const bool receives = kind >= kRecv && kind <= kRrcs;
    const bool sends = kind == kSend || kind == kRcs || kind == kRrs || kind == kRrcs;
    End *in = receives ? &ends_[st.in] : nullptr, *out = sends ? &ends_[st.out] : nullptr;
    Message msg;
    msg.x = receives ? nullptr : st.src + off;
    msg.y = kind == kReduce ? st.dst + off : kind >= kRrs && kind <= kRrcs ? st.src + off : nullptr;
    msg.dst = kind == kSend || kind == kRrs ? nullptr : st.dst + off;
    msg.bytes = bytes;
    msg.in = msg.out = nullptr;
    msg.in_flag = msg.out_flag = 0;
    msg.clean = 0;
    uint64_t n_in = 0, n_out = 0;
    bool wait_in = false, wait_out = false;
    if (receives) {
      n_in = in->first + uint64_t(tile_) * in->per_tile + st.in_before + m;
      msg.in = in->slots + slot(n_in) * in->stride;
      msg.in_flag = (n_in & a_.flag_mask) + 1;
      wait_in = kProto == kSimple && n_in >= in->limit;
    }
    if (sends) {
      n_out = out->first + uint64_t(tile_) * out->per_tile + st.out_before + m;
      msg.out = out->slots + slot(n_out) * out->stride;
      msg.out_flag = (n_out & a_.flag_mask) + 1;
      // So that a flag that has come round meets no line that old: twice a round every
      // slot is written whole.
      const uint64_t half = a_.flag_mask >> 1;
      if (kProto != kSimple && (n_out & half) + a_.slots > half) msg.clean = a_.slot_lines;
      wait_out = n_out >= out->limit;
    }
    if (wait_in || wait_out) {
      if (!wait_ends(wait_in ? in : nullptr, n_in, wait_out ? out : nullptr, n_out)) return false;
    }
    const Mover<T, kOp> mover{t_, a_};
    bool ok = true;
    if (kProto == kSimple || !(receives || sends)) {
      mover.plain(msg);
    } else {
      Spin spin;
      ok = kProto == kLL ? mover.ll(msg, spin) : mover.ll128(msg, spin);
      if (!ok) give_up(spin, 2, in->peer, in->chan, n_in + 1, 0);
    }
    if (t_.sync_or(!ok)) return false;
    if (sends && kProto == kSimple && t_.id == 0) store_release_system(out->theirs, n_out + 1);
    if (receives && t_.id == other()) store_credit(in->theirs, n_in + 1);
    return true;
  }

  // wait_ends waits until message n_in is there and a slot for n_out is free. Ends are
  // written between two barriers, so that all threads see the same limits.
  MSCCLSH_DEV bool wait_ends(End *in, uint64_t n_in, End *out, uint64_t n_out) {
    bool ok = true;
    uint64_t sent = 0, taken = 0;
    if (out && t_.id == 0) {
      Spin spin;
      while (ok && (taken = load_credit(out->mine)) + a_.slots <= n_out)
        ok = spin.go_on(a_) || give_up(spin, 3, out->peer, out->chan, n_out + 1 - a_.slots, taken);
    }
    if (in && t_.id == other()) {
      Spin spin;
      while (ok && (sent = load_acquire_system(in->mine)) <= n_in)
        ok = spin.go_on(a_) || give_up(spin, 2, in->peer, in->chan, n_in + 1, sent);
    }
    if (t_.sync_or(!ok)) return false;
    if (out && t_.id == 0) out->limit = taken + a_.slots;
    if (in && t_.id == other()) in->limit = sent;
    return true;
  }

  // other is a thread of another warp than thread 0's, where there is one.
  MSCCLSH_DEV uint32_t other() const { return t_.size > kWarp ? kWarp : 0; }

  MSCCLSH_DEV uint64_t slot(uint64_t n) const {
    uint32_t slots = uint32_t(a_.slots);
    return (slots & (slots - 1)) == 0 ? n & (slots - 1) : n % slots;
  }

  // give_up writes down what the block waited for and tells the others to leave.
  MSCCLSH_DEV bool give_up(const Spin &spin, int32_t waits_for, int32_t peer, int32_t chan,
                           uint64_t want, uint64_t have) {
    if (claim(&s_.claimed)) {
      Record &r = a_.records[t_.block];
      r = Record{want, have, tile_, spin.cause, step_, waits_for, peer, chan, 0};
    }
    raise_flag(a_.dead);
    raise_flag(a_.abort);
    return false;
  }

  const Thread &t_;
  const Args &a_;
  Shared &s_;
  Block &b_;
  const unsigned char *table_;
  End *ends_;
  const Dep *deps_;
  Step *window_;
  int64_t tile_ = 0;
  int32_t step_ = 0, window_start_ = 0, next_window_ = 0;
};

}  // namespace mscclsh

#endif
