// A block's connections: which message goes where.
#ifndef MSCCLSH_CONNECT_H
#define MSCCLSH_CONNECT_H

#include "move_ll.h"
#include "move_ll128.h"
#include "move_plain.h"

namespace mscclsh {

// slot_of is where message n of an end lies.
template <Protocol kProto>
MSCCLSH_DEV Slot slot_of(const Args &a, const End &e, uint64_t n) {
  Slot slot;
  slot.at = e.slots + (n & uint32_t(a.slots - 1)) * e.stride;
  slot.flag = (n & a.flag_mask) + 1;
  // So that a flag that has come round meets no line that old: twice a round every slot
  // is written whole.
  const uint64_t half = a.flag_mask >> 1;
  if (kProto != kSimple && e.sends && (n & half) + uint32_t(a.slots) > half)
    slot.clean = a.slot_lines;
  return slot;
}

// Nobody has joined a step.
struct Nobody {
  static constexpr int n_in = 0, n_out = 0;
  MSCCLSH_DEV const unsigned char *local(int) const { return nullptr; }
  MSCCLSH_DEV Slot in(int) const { return Slot(); }
  MSCCLSH_DEV Slot out(int) const { return Slot(); }
};

// flagged_apart moves a message in packets or lines. It returns why it gave up, 0 if it
// did not.
template <class Flagged, class Joined>
MSCCLSH_COLD int32_t flagged_apart(Flagged f, Message m, Joined joined) {
  Spin spin;
  return f.move(m, joined, spin) ? 0 : spin.cause;
}

// arrive_apart waits for the whole of a message in the same way.
template <class Flagged>
MSCCLSH_COLD int32_t arrive_apart(Flagged f, Slot in, int64_t bytes) {
  Spin spin;
  return f.arrive(in, bytes, spin) ? 0 : spin.cause;
}

// Joined are the steps that are done in one pass with the one before them: n_in that add
// something to the result, then n_out that send it, of which the first may be the last
// that adds. Each does its message whose number in the launch is its own first plus more.
template <Protocol kProto>
struct Joined {
  const Args &a;
  const End *ends;
  const Step *steps;
  int n_in, first_out, n_out;
  int64_t off;
  uint64_t tile;

  // local is what a step adds from memory, null if it adds a message.
  MSCCLSH_DEV const unsigned char *local(int j) const {
    return steps[j].kind == kReduce ? steps[j].x + off : nullptr;
  }
  MSCCLSH_DEV Slot in(int j) const {
    if (kProto == kDirect) return far(steps[j].x);
    return slot_of<kProto>(a, ends[steps[j].in], in_number(steps[j]));
  }
  MSCCLSH_DEV Slot out(int j) const {
    if (kProto == kDirect) return far(steps[first_out + j].far);
    return slot_of<kProto>(a, ends[steps[first_out + j].out], out_number(steps[first_out + j]));
  }
  MSCCLSH_DEV uint64_t in_number(const Step &s) const {
    return ends[s.in].first + tile * ends[s.in].per_tile + s.in_before;
  }
  MSCCLSH_DEV uint64_t out_number(const Step &s) const {
    return ends[s.out].first + tile * ends[s.out].per_tile + s.out_before;
  }

 private:
  MSCCLSH_DEV Slot far(unsigned char *at) const {
    Slot slot;
    slot.at = at + off;
    return slot;
  }
};

}  // namespace mscclsh

#endif
