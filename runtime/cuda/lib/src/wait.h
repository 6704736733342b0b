// Waiting, and giving up. Threads that wait for a counter do it in functions of their own.
#ifndef MSCCLSH_WAIT_H
#define MSCCLSH_WAIT_H

#include "shim.h"
#include "tables.h"

namespace mscclsh {

// Protocol is numbered like ir.Protocol.
enum Protocol : int32_t { kSimple, kLL, kLL128, kDirect, kProtocols };

MSCCLSH_BOTH bool receives(int32_t kind) { return kind >= kRecv && kind <= kRrcs; }
MSCCLSH_BOTH bool sends(int32_t kind) {
  return kind == kSend || kind == kRcs || kind == kRrs || kind == kRrcs;
}
MSCCLSH_BOTH bool reduces(int32_t kind) { return kind >= kRrs && kind <= kRrcs; }

// Shared is the block's shared memory; the head of its table follows it.
struct alignas(16) Shared {
  uint64_t launch;   // number of this launch, shifted into place
  uint32_t claimed;  // somebody has written the block's record
  uint32_t pad;
};

// look is a look at the clock and at what others say: 0, 1 when the time since since is
// up, 2 when the launch was cut short. It sets since the first time.
struct Looked {
  int64_t since;
  int32_t cause;
};
MSCCLSH_COLD Looked look(const Args *a, int64_t since) {
  const int64_t t = now();
  if (since == 0) since = t;
  if (load_flag(a->dead) || load_flag(a->abort)) return {since, 2};
  return {since, t - since > a->watchdog_ns ? 1 : 0};
}

// Spin is one wait's patience.
struct Spin {
  uint32_t n = 0;
  int32_t cause = 0;  // as in Record, once it has run out
  int64_t since = 0;

  MSCCLSH_DEV bool go_on(const Args &a) {
    pause(++n);
    if (MSCCLSH_LIKELY(n % kLooks != 0)) return true;
    const Looked l = look(&a, since);
    since = l.since;
    cause = l.cause;
    return cause == 0;
  }
};

// Waiter is one thread of a block that waits.
struct Waiter {
  Thread t;
  const Args *a;
  Shared *s;
  End *ends;
  uint64_t tile;
  int32_t step;

  // give_up writes down what the block waited for and tells the others to leave.
  MSCCLSH_DEV bool give_up(int32_t cause, int32_t waits_for, int32_t peer, int32_t chan,
                           uint64_t want, uint64_t have) const {
    Record &r = a->records[t.block];
    if (claim(&s->claimed) && r.cause == 0) {  // else an earlier launch was cut short
      r = Record{want, have, int64_t(tile), cause, step, waits_for, peer, chan, 0};
    }
    raise_flag(a->dead);
    raise_flag(a->abort);
    return false;
  }

  // in_number and out_number are the number of message m of a step.
  MSCCLSH_DEV uint64_t in_number(const Step &s, uint32_t m) const {
    const End &e = ends[s.in];
    return e.first + tile * e.per_tile + s.in_before + m;
  }
  MSCCLSH_DEV uint64_t out_number(const Step &s, uint32_t m) const {
    const End &e = ends[s.out];
    return e.first + tile * e.per_tile + s.out_before + m;
  }

  // Waiting is shared out among warps, from the last down; is_waiter says whether this
  // thread is the one for wait i.
  MSCCLSH_DEV bool is_waiter(uint32_t i) const {
    const uint32_t warps = t.size > kWarp ? t.size / kWarp : 1;
    return t.id % kWarp == 0 && t.id / kWarp == warps - 1 - i % warps;
  }
};

// These return whether what they waited for came.

// no_post is for a step of another thread block that did not end; have is what that one
// has posted.
MSCCLSH_COLD bool no_post(Waiter w, int32_t cause, Dep d, uint64_t have) {
  const uint64_t begun = int64_t(have - w.s->launch) < 0 ? 0 : have - w.s->launch;
  return w.give_up(cause, 1, int32_t(d.tb), -1, w.tile * d.steps + d.step + 1, begun);
}

// wait_deps waits for steps of other thread blocks of the rank, each thread for some.
MSCCLSH_COLD bool wait_deps(Waiter w, const uint64_t *posted, const Dep *deps, uint32_t n) {
  for (uint32_t i = w.t.id; i < n; i += w.t.size) {
    const Dep d = deps[i];
    const uint64_t want = w.s->launch + w.tile * d.steps + d.step + 1;
    uint64_t have;
    Spin spin;
    while (int64_t((have = load_acquire_device(&posted[d.tb])) - want) < 0)
      if (!spin.go_on(*w.a)) return no_post(w, spin.cause, d, have);
  }
  return true;
}

// wait_ends waits until the slots of message m of a step, and of those that have joined
// it, are free, and with Simple until their messages are there. It writes what it saw.
MSCCLSH_COLD bool wait_ends(Waiter w, const Step *st, uint32_t m, bool simple) {
  for (int i = 0; i <= st->join; i++) {
    if ((st[i].flags & kOut) && w.is_waiter(2 * i)) {
      End &e = w.ends[st[i].out];
      const uint64_t n = w.out_number(st[i], m), slots = uint32_t(w.a->slots);
      Spin spin;
      while (n >= e.limit && (e.seen = load_credit(e.mine) + slots) <= n)
        if (!spin.go_on(*w.a))
          return w.give_up(spin.cause, 3, e.peer, e.chan, n + 1 - slots, e.seen - slots);
    }
    if (simple && (st[i].flags & kIn) && w.is_waiter(2 * i + 1)) {
      End &e = w.ends[st[i].in];
      const uint64_t n = w.in_number(st[i], m);
      Spin spin;
      while (n >= e.limit && (e.seen = load_acquire_system(e.mine)) <= n)
        if (!spin.go_on(*w.a)) return w.give_up(spin.cause, 2, e.peer, e.chan, n + 1, e.seen);
    }
  }
  return true;
}

// saw_ends makes what wait_ends saw known to the block.
MSCCLSH_COLD void saw_ends(Waiter w, const Step *st, uint32_t m, bool simple) {
  for (int i = 0; i <= st->join; i++) {
    if ((st[i].flags & kOut) && w.is_waiter(2 * i)) {
      End &e = w.ends[st[i].out];
      if (w.out_number(st[i], m) >= e.limit) e.limit = e.seen;
    }
    if (simple && (st[i].flags & kIn) && w.is_waiter(2 * i + 1)) {
      End &e = w.ends[st[i].in];
      if (w.in_number(st[i], m) >= e.limit) e.limit = e.seen;
    }
  }
}

// wait_peer waits until the peer of an end has said something of all messages before one.
MSCCLSH_COLD bool wait_peer(Waiter w, int32_t end, uint64_t number, int32_t waits_for) {
  const End &e = w.ends[end];
  uint64_t have;
  Spin spin;
  while ((have = load_acquire_system(e.mine)) < number)
    if (!spin.go_on(*w.a)) return w.give_up(spin.cause, waits_for, e.peer, e.chan, number, have);
  return true;
}

// wait_slot waits until there is a slot for message n of an end.
MSCCLSH_COLD bool wait_slot(Waiter w, int32_t end, uint64_t n) {
  const End &e = w.ends[end];
  const uint64_t slots = uint32_t(w.a->slots);
  uint64_t taken;
  Spin spin;
  while ((taken = load_credit(e.mine)) + slots <= n)
    if (!spin.go_on(*w.a)) return w.give_up(spin.cause, 3, e.peer, e.chan, n + 1 - slots, taken);
  return true;
}

// no_message is for a message whose flags did not come.
MSCCLSH_COLD bool no_message(Waiter w, int32_t cause, int32_t end, uint64_t number) {
  return w.give_up(cause, 2, w.ends[end].peer, w.ends[end].chan, number, 0);
}

}  // namespace mscclsh

#endif
