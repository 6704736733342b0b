// Kernels for short programs whose thread blocks wait for each other.
#include "job.h"

namespace {

// Short programs get fewer threads than others, so that what is prepared tells.
constexpr int32_t kUsual = 4, kShort = 2;

// Small is a program of copies on one rank, from its input to its output and back.
struct Small {
  Small() : p(2) {
    p.chunks_total = 2;
    for (int32_t i : {0, 1, 3, 4}) p.chunks[size_t(i)] = 2;
  }
  int32_t block() { return p.block(0); }
  Small &nop(int32_t tb) {
    p.step(0, tb, MSCCLSH_NOP);
    return *this;
  }
  Small &copy(int32_t tb, int32_t from, int32_t to, int32_t chunk = 0) {
    mscclsh_step &s = p.step(0, tb, MSCCLSH_COPY);
    s.src_buf = from;
    s.dst_buf = to;
    s.src_chunk = s.dst_chunk = chunk;
    return *this;
  }
  mscclsh_step &last(int32_t tb) { return p.gpus[0][size_t(tb)].steps.back(); }
  Small &after(int32_t tb, int32_t on) {
    p.after(0, tb, on);
    return *this;
  }
  Program p;
};

void expect_short(Program p, int32_t ranks, bool is_short, const char *what) {
  for (int32_t protocol : {0, 1, 2}) {
    Comm comm(ranks, 1, 0, 0);
    Case c = {ranks, 1, protocol, 3, 512, 4, 0, 0, 0, 0, 0};
    Job j(&comm, p, c, 2);
    const int32_t want = is_short && protocol != 0 ? kShort : kUsual;
    EXPECT(j.info.threads == want, "%s, protocol %d: %d threads, want %d", what, protocol,
           j.info.threads, want);
  }
}

// Posts and waits must say in which order thread blocks touch the same memory.
void test_choice() {
  expect_short(all_pairs(3), 3, true, "all pairs");
  expect_short(gather(3), 3, true, "gather");
  // A chunk that one thread block sent first is received into by another at last, in an
  // order that messages alone say.
  expect_short(split_ring(3), 3, false, "split ring");
  Small apart;
  apart.copy(apart.block(), 0, 1, 0).copy(apart.block(), 0, 1, 1);
  expect_short(apart.p, 2, true, "different chunks");
  Small reads;
  reads.copy(reads.block(), 0, 1, 0);
  reads.block();
  reads.p.base_buf[2] = 0;
  reads.p.chunks[2] = 2;
  reads.copy(1, 2, 1, 1);
  expect_short(reads.p, 2, true, "different chunks of one buffer by two names");
  Small both;
  both.copy(both.block(), 0, 1).copy(both.block(), 0, 1);
  expect_short(both.p, 2, false, "two write");
  Small waits;
  waits.copy(waits.block(), 0, 1).copy(waits.block(), 0, 1).after(1, 0);
  expect_short(waits.p, 2, true, "two write one after the other");
  Small swap;
  swap.copy(swap.block(), 0, 1).copy(swap.block(), 1, 0);
  expect_short(swap.p, 2, false, "one reads what the other writes, and the other way round");
  Small third;
  third.copy(third.block(), 0, 1).nop(third.block()).after(1, 0);
  third.copy(third.block(), 0, 1).after(2, 1);
  expect_short(third.p, 2, true, "in order through a third");
  Small later;
  later.copy(later.block(), 0, 1).nop(0).nop(later.block()).after(1, 0).copy(1, 0, 1);
  expect_short(later.p, 2, true, "a later step posts, an earlier one waits");
  Small early;
  early.nop(early.block());
  early.copy(early.block(), 0, 1).after(1, 0).copy(0, 0, 1);
  expect_short(early.p, 2, false, "what is posted comes before the write");
  Small late;
  late.copy(late.block(), 0, 1).copy(late.block(), 0, 1).nop(1).after(1, 0);
  expect_short(late.p, 2, false, "what waits comes after the write");
  Small over;
  over.copy(over.block(), 0, 1).copy(over.block(), 0, 0, 1).last(1).dst_chunk = 0;
  expect_short(over.p, 2, false, "one overwrites what the other reads");
  Small second;
  second.copy(second.block(), 0, 1).last(0).count = 2;
  second.copy(second.block(), 0, 0).last(1).dst_chunk = 1;
  expect_short(second.p, 2, false, "the second chunk of two is overwritten");
  Small two;
  two.copy(two.block(), 0, 1).nop(two.block()).nop(two.block()).after(2, 0);
  two.copy(2, 0, 1).after(2, 1);
  expect_short(two.p, 2, true, "what waits has waited for another in between");
  Small circle;
  circle.copy(circle.block(), 0, 1).copy(circle.block(), 0, 1).after(1, 0).after(0, 1);
  expect_short(circle.p, 2, true, "each waits for the other: nothing happens");
}

// Values, with all numbers of threads, types and devices.
void test_values() {
  for (int32_t protocol : {1, 2})
    for (int32_t n : {2, 4})
      for (int32_t threads : {0, 1, 3})
        for (int64_t elems : {4, 60, 240}) {
          const int32_t dtype = threads == 3 ? 1 : 0;  // fp64
          Case c = {n,     threads == 1 ? 1 : 2, protocol, 3, 2048, elems,
                    dtype, elems == 60 ? 4 : 0,  threads,  0, 0};
          Comm comm(c.ranks, c.devices, 0, 0);
          Program p = all_pairs(n);
          Job j(&comm, p, c, 1);
          if (threads == 0 && elems == 4)
            EXPECT(j.info.threads == kShort, "%d threads", j.info.threads);
          for (int seed = 1; seed < 4; seed++) {
            j.fill(seed);
            j.run(1 + seed % 2);
            j.check(seed, -1, "quick");
          }
        }
}

// The kernels take turns, and numbers of launches and messages go on; flags come round.
void test_turns() {
  const int32_t n = 3;
  Comm comm(n, 3, 32, 0);
  Program a = all_pairs(n), b = chain(n, 2), d = gather(n);
  Case c = {n, 3, 1, 3, 512, 4, 0, 0, 0, 0, 32};
  Job ll(&comm, a, c, 1), ch(&comm, b, c, 1);
  c.protocol = 2;
  Job ll128(&comm, a, c, 1), g(&comm, d, c, 1);
  for (int k = 0; k < 24; k++) {
    // One element is not aligned, 300 are several tiles: neither is short.
    const int64_t elems = k % 4 == 1 ? 1 : k % 4 == 3 ? 300 : 4;
    ll.prepare(elems, 1);
    ll128.prepare(k % 3 == 0 ? 300 : 8, 1);
    EXPECT((ll.info.threads == kShort) == (elems == 4), "%d threads", ll.info.threads);
    Job *all[] = {&ll, &ch, &ll128, &g};
    for (Job *j : all) j->fill(k);
    for (Job *j : all) OK(mscclsh_enqueue(j->prog, 1 + k % 3, err, sizeof err));
    OK(mscclsh_sync(comm.comm, err, sizeof err));
    ll.check(k, -1, "turns of LL");
    ch.check(k, 2, "turns of a chain");
    ll128.check(k, -1, "turns of LL128");
    // In place: only a single launch has the inputs.
    if (k % 3 == 0) g.check(k, -1, "turns of gather");
  }
}

void test_replays() {
  for (int32_t protocol : {1, 2}) {
    Comm comm(2, 2, 32, 0);
    Program p = all_pairs(2), q = gather(2);
    Case c = {2, 2, protocol, 3, 512, 4, 0, 0, 0, 0, 32};
    Job j(&comm, p, c, 1), other(&comm, q, c, 1);
    EXPECT(j.info.threads == kShort, "%d threads", j.info.threads);
    OK(mscclsh_capture(j.prog, 3, err, sizeof err));
    for (int k = 0; k < 30; k++) {
      double ns = 0;
      j.fill(k);
      OK(mscclsh_replay(j.prog, 1 + k % 2, &ns, err, sizeof err));
      j.check(k, -1, "replay");
      if (k % 5 == 0) OK(mscclsh_enqueue(other.prog, 2, err, sizeof err));
    }
  }
}

// A wait for a step that never ends is told: which of several, and how far it came.
void test_hang() {
  for (int32_t protocol : {1, 2}) {
    Comm comm(2, 2, 0, 300000000);
    Program p(2);
    p.chunks_total = 1;
    for (int32_t i : {0, 1, 3, 4}) p.chunks[size_t(i)] = 1;
    const int32_t a = p.block(0), b = p.block(0), w = p.block(0);
    p.step(0, a, MSCCLSH_NOP);
    p.step(0, b, MSCCLSH_NOP);
    p.step(0, w, MSCCLSH_NOP);
    p.after(0, w, a);
    p.after(0, w, b);
    mscclsh_step &r = p.step(0, b, MSCCLSH_RECV);  // nobody sends
    r.recv_peer = 1;
    r.dst_buf = 1;
    p.step(0, a, MSCCLSH_NOP);
    p.step(0, w, MSCCLSH_NOP);
    p.after(0, w, a);
    p.after(0, w, b);
    Case c = {2, 2, protocol, 2, 512, 4, 0, 0, 0, 0, 0};
    Job j(&comm, p, c, 1);
    EXPECT(j.info.threads == kShort, "%d threads", j.info.threads);
    double ns = 0;
    EXPECT(mscclsh_run(j.prog, 1, &ns, err, sizeof err) == MSCCLSH_ESTUCK, "got %s", err);
    mscclsh_wait at[4];
    int64_t have = 0;
    OK(mscclsh_waits(comm.comm, at, 4, &have, err, sizeof err));
    EXPECT(have == 2, "%lld blocks wait, want 2", static_cast<long long>(have));
    bool message = false, step = false;
    for (int64_t i = 0; i < have && i < 4; i++) {
      message |= at[i].tb == b && at[i].step == 1 && at[i].waits_for == MSCCLSH_WAIT_MESSAGE;
      step |= at[i].tb == w && at[i].step == 1 && at[i].waits_for == MSCCLSH_WAIT_STEP &&
              at[i].peer == b && at[i].want == 2 && at[i].have == 1;
    }
    EXPECT(message && step, "protocol %d: a waiting block is not told", protocol);
  }
}

}  // namespace

void test_quick() {
  test_choice();
  test_values();
  test_turns();
  test_replays();
  test_hang();
}
