// What the operations of a launch do to counters: how often each is counted up and waited
// for, and by which thread blocks. From that follows, for every operation, what a counter
// must have come to in whatever launch, so that none is ever set back.
#include "one_prog.h"

namespace mscclsh {

// turns is how often the body of a pipeline runs.
int64_t OneProg::turns(const mscclsh_op &op, int64_t chunk) const {
  return (int64_t(op.unit_chunks) * chunk + op.unit_bytes - 1) / op.unit_bytes;
}

// uses lists what an operation of a rank does, one for each of its references.
std::vector<OneProg::Use> OneProg::uses(int32_t rank, const mscclsh_op &op) const {
  std::vector<Use> all;
  for (int32_t i = op.ref_start; i < op.ref_end; i++) {
    const int32_t ref = refs_[size_t(i)];
    Use u = {rank, -1, false, false, op.via == MSCCLSH_VIA_PORT, -1, ref};
    switch (op.kind) {
      case MSCCLSH_OP_BARRIER:
        u.counter = first(rank, kBarrier) + barriers_[size_t(rank)].at(ref);
        u.gives = u.takes = true;
        break;
      case MSCCLSH_OP_SEM_ACQUIRE:
      case MSCCLSH_OP_SEM_RELEASE:
        u.counter = first(rank, kSemaphore) + ref;
        u.takes = op.kind == MSCCLSH_OP_SEM_ACQUIRE;
        u.gives = !u.takes;
        break;
      default: {
        const mscclsh_channel &c = channel(rank, ref);
        u.peer = c.peer;
        switch (op.kind) {
          case MSCCLSH_OP_WAIT:
          case MSCCLSH_OP_RLXWAIT:
            u.takes = true;
            u.ports = false;  // the counter is here, whoever counts
            u.counter = ref;
            break;
          case MSCCLSH_OP_SIGNAL:
          case MSCCLSH_OP_RLXSIGNAL:
          case MSCCLSH_OP_PWS:
          case MSCCLSH_OP_PWSF:
            u.gives = true;
            u.rank = c.peer;
            u.counter = c.pair;
        }
      }
    }
    all.push_back(u);
  }
  return all;
}

// count looks at all operations of all ranks.
void OneProg::count(Run *run) const {
  run->counts.assign(size_t(comm->ranks()), {});
  for (int32_t r = 0; r < comm->ranks(); r++) run->counts[size_t(r)].resize(size_t(counters(r)));
  for (int32_t tb = 0; tb < int32_t(tbs_.size()); tb++) {
    for (int32_t i = blocks_[size_t(tb)].start; i < blocks_[size_t(tb)].end; i++) {
      const mscclsh_op &op = ops_[size_t(i)];
      if (op.kind != MSCCLSH_OP_PIPELINE) {
        count_op(run, tb, op, 1);
        continue;
      }
      const int64_t n = turns(op, run->chunk);
      for (int32_t k = op.body_start; k < op.body_end && n > 0; k++)
        count_op(run, tb, ops_[size_t(k)], uint64_t(n));
    }
  }
}

void OneProg::count_op(Run *run, int32_t tb, const mscclsh_op &op, uint64_t times) const {
  int32_t position = 0;
  for (const Use &u : uses(tbs_[size_t(tb)].rank, op)) {
    const int32_t thread = position++ % run->threads;
    if (u.counter < 0) continue;
    Counter &c = run->counts[size_t(u.rank)][size_t(u.counter)];
    if (u.takes) {
      c.takes += times;
      c.takers[tb] += times;
    }
    if (!u.gives) continue;
    c.gives += times;
    c.givers[tb] += times;
    // Stores of one thread to a counter come in their order; those of several need not.
    c.thread = c.thread == -1 || c.thread == thread ? thread : -2;
    if (op.kind != MSCCLSH_OP_BARRIER) continue;
    if (c.parts != 0 && c.parts != op.parts)
      bad(tb, op,
          format("barrier %d is for %d thread blocks here and for %d elsewhere", u.chan, op.parts,
                 c.parts));
    c.parts = op.parts;
  }
}

// reduction is what an operation reduces by in this run, or -1.
int32_t OneProg::reduction(const mscclsh_op &op, int32_t run_op) const {
  constexpr int32_t kFixed[] = {0, kSum, kMin, kMax, kProd};
  switch (op.kind) {
    case MSCCLSH_OP_RE:
    case MSCCLSH_OP_RES:
    case MSCCLSH_OP_RRE:
    case MSCCLSH_OP_RRES:
    case MSCCLSH_OP_REPKT:
    case MSCCLSH_OP_RESPKT:
    case MSCCLSH_OP_RECPKT:
    case MSCCLSH_OP_RECSPKT:
      break;
    default:
      return -1;
  }
  const int32_t op_of = op.reduce > 0 ? kFixed[op.reduce] : run_op;
  return op_of == kAvg ? int32_t(kSum) : op_of;
}

}  // namespace mscclsh
