// Places of a bound call's buffers, which each launch brings anew.
#ifndef MSCCLSH_REBASE_H
#define MSCCLSH_REBASE_H

#include "shim.h"
#include "tables.h"

namespace mscclsh {

// rebased is a place as it stands in a table, where it lies in this launch. Null stays null,
// and so does an address as it is.
MSCCLSH_DEV unsigned char *rebased(const Bases &b, unsigned char *place) {
  const uint64_t v = reinterpret_cast<uint64_t>(place);
  return reinterpret_cast<unsigned char *>(v + b.of[v >> kNumberBit]);
}

// rebase_steps does that to steps that have just come into shared memory, so that nothing
// later need know of it: step id, id + size, ... of n.
//
// It goes over them once more, and only where a launch brings places. To add while copying
// would spare bound calls a trip to shared memory, but cost prepared programs as much: the
// copy's loop is unrolled to have many loads on their way, and each would have ten
// instructions behind it, to be fetched and to be gone through whatever they add. As it is
// prepared programs have one branch, which all threads take alike, on a word of the argument
// that lies in one line with others which are wanted next. And bound calls mostly don't see
// the time either: it passes while the launch before still runs, or while another warp has
// the rest of the code fetched.
MSCCLSH_DEV void rebase_steps(const Bases &b, Step *steps, uint32_t n, uint32_t id, uint32_t size) {
  MSCCLSH_ROLLED
  for (uint32_t i = id; i < n; i += size) {
    Step &s = steps[i];
    s.x = rebased(b, s.x);
    s.y = rebased(b, s.y);
    s.dst = rebased(b, s.dst);
    s.far = rebased(b, s.far);
  }
}

}  // namespace mscclsh

#endif
