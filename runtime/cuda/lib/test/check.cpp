// Tests of the library through its C interface, on the host build.
#include "job.h"

#include "../src/number.h"

namespace {

void once(Program p, const Case &c, int32_t regime, int32_t root, const char *what) {
  Comm comm(c.ranks, c.devices, c.modulus, 0);
  Job j(&comm, p, c, regime);
  j.fill(1);
  j.run(1);
  j.check(1, root, what);
}

// Every program and protocol, tiles and regimes, aligned and not.
void test_programs() {
  for (int32_t protocol = 0; protocol < 3; protocol++) {
    for (int64_t elems : {0, 1, 7, 64, 501}) {
      for (int32_t misalign : {0, 1}) {
        Case c = {4, 2, protocol, 2, 1024, elems, 0, 0, 3, misalign, 0};
        once(all_pairs(4), c, 1, -1, "all pairs");
        once(gather(4), c, 1, -1, "gather");
        once(chain(4, 1), c, 1, 1, "chain");
        const int32_t regime = elems < 65 ? 2 : 1;
        c.slots = regime == 2 ? 2 : 3;  // two messages a step need one slot more
        once(ring(4, 2, 2), c, regime, -1, "ring");
      }
    }
    Case c = {2, 1, protocol, 1, 256, 33, 0, 0, 2, 0, 0};
    once(all_pairs(2), c, 1, -1, "all pairs of two, one slot");
    c.ranks = 3;
    c.slots = 3;
    once(ring(3, 1, 1), c, 1, -1, "ring of three, three slots");
  }
}

// Every type with every reduction.
void test_types() {
  for (int32_t dtype = 0; dtype < 12; dtype++)
    for (int32_t op = 0; op < 5; op++) {
      Case c = {4, 2, op % 3, 2, 256, 37, dtype, op, 2, dtype % 2, 0};
      once(gather(4), c, 1, -1, "types");
    }
}

// A message may be the only word that another one, which it answers, was taken whole: one
// that fewer threads send than took the other.
void test_answers() {
#if !defined(__SANITIZE_THREAD__)  // which does not know what packets order
  const int32_t many = 8;
  Program p(2);
  p.chunks_total = many;
  for (int32_t i : {0, 1, 3, 4}) p.chunks[size_t(i)] = many;
  const int32_t first = p.block(0), last = p.block(0), other = p.block(1);
  mscclsh_step &s = p.step(0, first, MSCCLSH_SEND, many);
  s.send_peer = 1;
  mscclsh_step &r = p.step(1, other, MSCCLSH_RECV, many);
  r.recv_peer = 0;
  r.dst_buf = 1;
  mscclsh_step &answer = p.step(1, other, MSCCLSH_SEND);
  answer.send_peer = 0;
  answer.src_chunk = many - 1;
  mscclsh_step &over = p.step(0, last, MSCCLSH_RECV);  // over what was sent
  over.recv_peer = 1;
  over.dst_chunk = many - 1;
  for (int32_t protocol : {1, 2}) {
    // A chunk is what one thread carries.
    const int32_t elems = protocol == 1 ? 2 : 240;
    Case c = {2, 2, protocol, 2, many * elems * 4, elems, 0, 0, 4, 0, 0};
    Comm comm(2, 2, 0, 0);
    Job j(&comm, p, c, many);
    std::vector<float> data(size_t(j.elems()));
    bool right = true;
    for (int k = 1; k <= 1000 && right; k++) {
      j.fill(k);
      j.run(1);
      OK(mscclsh_download(j.prog, 1, 1, 0, data.data(), int64_t(4 * data.size()), err, sizeof err));
      for (int64_t i = 0; i < j.elems(); i++) right &= double(data[size_t(i)]) == value(0, i, k);
      EXPECT(right, "protocol %d: launch %d sent what an answer to it overwrote", protocol, k);
    }
  }
#endif
}

// More steps than shared memory holds at once, and more dependencies.
void test_long() {
  for (int32_t rounds : {100, 1100}) {
    Case c = {2, 2, 1, 2, 256, 70, 0, 0, 2, 0, 0};
    once(long_chain(rounds), c, 1, 0, "long");
  }
}

// Programs of several protocols and sizes alternate on one communicator, with a broadcast
// between allreduces whose root could run ahead; flags wrap around often.
void test_alternating() {
  const int32_t n = 3;
  Comm comm(n, 3, 16, 0);
  Program a = ring(n, 1, 1), b = chain(n, 2), d = gather(n);
  Case c = {n, 3, 1, 2, 128, 100, 0, 0, 2, 0, 16};
  Job ra(&comm, a, c, 1), ch(&comm, b, c, 1);
  c.protocol = 2;
  c.chunk_elems = 31;
  Job g128(&comm, d, c, 1), c128(&comm, b, c, 1);
  c.protocol = 0;
  Job gs(&comm, d, c, 1);
  for (int k = 0; k < 40; k++) {
    ra.fill(k);
    ch.fill(k + 1);
    g128.fill(k);
    c128.fill(k + 1);
    gs.fill(k);
    OK(mscclsh_enqueue(ra.prog, 1, err, sizeof err));
    OK(mscclsh_enqueue(ch.prog, k % 3, err, sizeof err));
    OK(mscclsh_enqueue(g128.prog, 1, err, sizeof err));
    OK(mscclsh_enqueue(c128.prog, 1 + k % 2, err, sizeof err));
    OK(mscclsh_enqueue(gs.prog, 1, err, sizeof err));
    OK(mscclsh_sync(comm.comm, err, sizeof err));
    ra.check(k, -1, "alternating ring");
    if (k % 3 > 0) ch.check(k + 1, 2, "alternating chain");
    g128.check(k, -1, "alternating gather");
    c128.check(k + 1, 2, "alternating LL128 chain");
    gs.check(k, -1, "alternating Simple gather");
  }
}

// A large message meets the lines of the one a whole round of flags earlier, between
// which only small ones came.
void test_wrap() {
  for (int32_t protocol : {1, 2}) {
    for (int32_t slots : {2, 3}) {  // 4 and 6, in fact
      Comm comm(2, 2, slots == 2 ? 16 : 32, 0);
      Program p = chain(2, 1);  // two messages a launch, the receiver on the device launched first
      Case c = {2, 2, protocol, slots, 512, 120, 0, 0, 2, 0, 16};
      Job big(&comm, p, c, 1);
      c.chunk_elems = 1;
      Job small(&comm, p, c, 1);
      small.fill(0);
      for (int k = 0; k < 12; k++) {
        big.fill(k);
        big.run(1);
        big.check(k, 1, "wrapped");
        const int32_t between = slots == 2 ? 7 : 47;  // the same slot again
        OK(mscclsh_enqueue(small.prog, between, err, sizeof err));
        OK(mscclsh_sync(comm.comm, err, sizeof err));
      }
    }
  }
}

// A graph replays with changing inputs; messages of changing size leave stale lines.
void test_graph() {
  for (int32_t protocol = 0; protocol < 3; protocol++) {
    Comm comm(2, 2, 16, 0);
    Program p = gather(2), q = all_pairs(2);
    Case c = {2, 2, protocol, 2, 512, 90, 2, 0, 2, 0, 16};
    Job big(&comm, p, c, 1);
    c.chunk_elems = 5;
    Job small(&comm, q, c, 1);
    OK(mscclsh_capture(big.prog, 1, err, sizeof err));
    OK(mscclsh_capture(small.prog, 3, err, sizeof err));
    for (int k = 0; k < 30; k++) {
      double ns = 0;
      if (k % 7 == 0) {
        big.fill(k);
        OK(mscclsh_replay(big.prog, 1, &ns, err, sizeof err));
        big.check(k, -1, "graph");
      }
      small.fill(k);
      OK(mscclsh_replay(small.prog, 2, &ns, err, sizeof err));
      small.check(k, -1, "small graph");
    }
  }
}

// Who waits for what is told, and the communicator is of no more use.
void test_watchdog() {
  for (int32_t protocol = 0; protocol < 3; protocol++) {
    Comm comm(2, 2, 0, 200000000);
    Program p(2);
    p.chunks_total = 1;
    for (int32_t r = 0; r < 2; r++) {
      p.chunks[size_t(3 * r)] = p.chunks[size_t(3 * r + 1)] = 1;
      mscclsh_step &s = p.step(r, p.block(r), MSCCLSH_RECV);
      s.recv_peer = 1 - r;
      s.dst_buf = 1;
      s.chan = 5;
    }
    const int32_t other = p.block(1);
    p.step(1, other, MSCCLSH_NOP);
    p.after(1, other, 0);
    Case c = {2, 2, protocol, 2, 512, 9, 0, 0, 2, 0, 0};
    Job j(&comm, p, c, 1);
    double ns = 0;
    EXPECT(mscclsh_run(j.prog, 1, &ns, err, sizeof err) == MSCCLSH_ESTUCK, "got %s", err);
    EXPECT(std::strstr(err, "watchdog") != nullptr, "got %s", err);
    mscclsh_wait w[8];
    int64_t have = 0;
    OK(mscclsh_waits(comm.comm, w, 8, &have, err, sizeof err));
    EXPECT(have == 3, "%lld blocks wait, want 3", (long long)have);
    bool message = false, step = false;
    for (int64_t i = 0; i < have && i < 8; i++) {
      message |= w[i].rank == 0 && w[i].tb == 0 && w[i].step == 0 && w[i].tile == 0 &&
                 w[i].waits_for == MSCCLSH_WAIT_MESSAGE && w[i].peer == 1 && w[i].chan == 5;
      step |= w[i].rank == 1 && w[i].tb == 1 && w[i].waits_for == MSCCLSH_WAIT_STEP &&
              w[i].peer == 0 && w[i].want == 1 && w[i].have == 0;
    }
    EXPECT(have > 0 && w[0].timed_out == 1, "nobody's time ran out");
    EXPECT(message && step, "protocol %d: a waiting block is not told", protocol);
    EXPECT(mscclsh_run(j.prog, 1, &ns, err, sizeof err) == MSCCLSH_EDEAD, "got %s", err);
  }
  // The step is told in kernels for short programs too.
  for (int32_t protocol : {1, 2}) {
    Comm comm(2, 1, 0, 200000000);
    Program p(2);
    p.chunks[0] = p.chunks[1] = p.chunks[4] = 1;
    const int32_t a = p.block(0), b = p.block(1);
    p.step(0, a, MSCCLSH_SEND).send_peer = 1;
    mscclsh_step &r = p.step(0, a, MSCCLSH_RECV);
    r.recv_peer = 1;
    r.dst_buf = 1;
    mscclsh_step &s = p.step(1, b, MSCCLSH_RECV);
    s.recv_peer = 0;
    s.dst_buf = 1;
    Case c = {2, 1, protocol, 2, 512, 16, 0, 0, 2, 0, 0};
    Job j(&comm, p, c, 1);
    double ns = 0;
    EXPECT(mscclsh_run(j.prog, 1, &ns, err, sizeof err) == MSCCLSH_ESTUCK, "got %s", err);
    mscclsh_wait w = {};
    int64_t have = 0;
    OK(mscclsh_waits(comm.comm, &w, 1, &have, err, sizeof err));
    EXPECT(have == 1 && w.rank == 0 && w.step == 1 && w.waits_for == MSCCLSH_WAIT_MESSAGE,
           "rank %d step %d waits, want rank 0 step 1 for a message", w.rank, w.step);
  }
  // A sender without a receiver fills its slots, twice as many as are asked for.
  Comm comm(2, 1, 0, 200000000);
  Program p(2);
  p.chunks[0] = 5;
  const int32_t tb = p.block(0);
  for (int32_t i = 0; i < 5; i++) p.step(0, tb, MSCCLSH_SEND).send_peer = 1;
  Case c = {2, 1, 0, 2, 512, 9, 0, 0, 2, 0, 0};
  Job j(&comm, p, c, 1);
  double ns = 0;
  EXPECT(mscclsh_run(j.prog, 1, &ns, err, sizeof err) == MSCCLSH_ESTUCK, "got %s", err);
  mscclsh_wait w = {};
  int64_t have = 0;
  OK(mscclsh_waits(comm.comm, &w, 1, &have, err, sizeof err));
  EXPECT(have == 1 && w.step == 4 && w.waits_for == MSCCLSH_WAIT_SLOT && w.peer == 1 &&
             w.want == 1 && w.have == 0,
         "step %d waits for %d, want step 4 for a slot", w.step, w.waits_for);
}

// What can't be done is refused before anything runs.
void test_refusals() {
  Comm comm(2, 1, 0, 0);
  auto load = [&](Program p, const char *want) {
    mscclsh_program flat = p.flatten(0, 2, 256);
    mscclsh_prog *prog = nullptr;
    EXPECT(mscclsh_load(comm.comm, &flat, &prog, err, sizeof err) != MSCCLSH_OK, "want %s", want);
    EXPECT(std::strstr(err, want) != nullptr, "got %s, want %s", err, want);
  };
  Program p = ring(2, 1, 1);
  p.gpus[0][0].steps[0].src_chunk = 2;
  load(p, "rank 0 thread block 0 step 0: its source is chunks 2 to 3");
  p = ring(2, 1, 1);
  p.gpus[1][0].steps[0].send_peer = 1;
  load(p, "rank 1 thread block 0 step 0: peer 1");
  p = ring(2, 1, 1);
  p.gpus[0].push_back(p.gpus[0][0]);
  load(p, "thread blocks 0 and 1 share the connection");
  p = ring(2, 1, 1);
  p.base_chunk[1] = 1;
  load(p, "rank 0 buffer 1: 2 chunks inside buffer 0 from chunk 1 on");

  Program big = ring(2, 300, 1);
  mscclsh_program flat = big.flatten(0, 2, 256);
  mscclsh_prog *prog = nullptr;
  OK(mscclsh_load(comm.comm, &flat, &prog, err, sizeof err));
  mscclsh_size size = {};
  size.chunk_bytes = 4;
  size.regime = 1;
  size.threads = 8;
  EXPECT(mscclsh_prepare(prog, &size, nullptr, err, sizeof err) == MSCCLSH_EREFUSED, "it fits");
  EXPECT(std::strstr(err, "needs 600 thread blocks of 8 threads at once, but 250 fit"), "got %s",
         err);
  size.threads = 0;
  size.regime = 100;
  size.chunk_bytes = 8;
  EXPECT(mscclsh_prepare(prog, &size, nullptr, err, sizeof err) == MSCCLSH_EINVAL, "K too large");
  size.regime = 1;
  size.chunk_bytes = 6;
  EXPECT(mscclsh_prepare(prog, &size, nullptr, err, sizeof err) == MSCCLSH_EINVAL,
         "no whole elements");
  OK(mscclsh_unload(prog, err, sizeof err));
}

// Tables of nothing may be null, others not: programs without thread blocks, and with some
// that have no steps, run and leave everything as it was.
void test_nothing() {
  Comm comm(2, 2, 0, 0);
  const int32_t none[2] = {0, 0}, one[2] = {1, 1};
  Program p(2);
  p.chunks.assign(6, 1);
  p.base_buf = {0, 1, 2, 0, 1, 2};
  p.base_chunk.assign(6, 0);
  mscclsh_program flat = p.flatten(0, 2, 256);
  mscclsh_prog *prog = nullptr;
  for (int with = 0; with < 2; with++) {
    flat.tbs = with ? one : none;
    flat.steps_per_tb = with ? none : nullptr;
    flat.steps = nullptr;
    flat.deps = nullptr;
    flat.divides = nullptr;
    OK(mscclsh_load(comm.comm, &flat, &prog, err, sizeof err));
    for (int32_t trace = 0; trace < 2; trace++) {
      mscclsh_size size = {};
      size.chunk_bytes = 8;
      size.regime = 1;
      size.threads = 2;
      size.trace = trace;
      OK(mscclsh_prepare(prog, &size, nullptr, err, sizeof err));
      OK(mscclsh_fill(prog, 1, 1, 7, err, sizeof err));
      double ns = 0;
      OK(mscclsh_run(prog, 2, &ns, err, sizeof err));
      OK(mscclsh_capture(prog, 2, err, sizeof err));
      OK(mscclsh_replay(prog, 2, &ns, err, sizeof err));
      int64_t have = -1;
      OK(mscclsh_events(prog, nullptr, 0, &have, err, sizeof err));
      EXPECT(have == 0, "%lld events", static_cast<long long>(have));
      unsigned char out[8] = {};
      OK(mscclsh_download(prog, 1, 1, 0, out, 8, err, sizeof err));
      for (unsigned char b : out) EXPECT(b == 7, "got %d", b);
      OK(mscclsh_check_guards(prog, err, sizeof err));
    }
    OK(mscclsh_unload(prog, err, sizeof err));
  }
  auto lacks = [&](const char *what) {
    EXPECT(mscclsh_load(comm.comm, &flat, &prog, err, sizeof err) == MSCCLSH_EINVAL, "%s", what);
    EXPECT(std::strstr(err, "lacks a table") != nullptr, "%s: got %s", what, err);
  };
  flat.steps_per_tb = nullptr;
  lacks("thread blocks without numbers of steps");
  flat.steps_per_tb = one;
  lacks("no steps");
  flat.tbs = none;
  flat.n_deps = 1;
  lacks("no dependencies");
  flat.n_deps = 0;
  flat.n_divides = 1;
  lacks("no divisions");
}

// Each step of each tile is recorded, in order.
void test_trace() {
  Comm comm(2, 1, 0, 0);
  Program p = ring(2, 1, 1);
  mscclsh_program flat = p.flatten(1, 2, 256);
  mscclsh_prog *prog = nullptr;
  OK(mscclsh_load(comm.comm, &flat, &prog, err, sizeof err));
  mscclsh_size size = {};
  size.chunk_bytes = 600;  // 3 tiles
  size.regime = 1;
  size.trace = 1;
  OK(mscclsh_prepare(prog, &size, nullptr, err, sizeof err));
  double ns = 0;
  OK(mscclsh_run(prog, 1, &ns, err, sizeof err));
  mscclsh_event e[64];
  int64_t have = 0;
  OK(mscclsh_events(prog, e, 64, &have, err, sizeof err));
  EXPECT(have == 2 * 3 * 3, "%lld events", (long long)have);
  for (int64_t i = 0; i < have; i++) {
    EXPECT(e[i].begin > 0 && e[i].begin <= e[i].end, "event %lld", (long long)i);
    EXPECT(e[i].step == i % 3 && e[i].tile == i / 3 % 3 && e[i].rank == i / 9, "event %lld",
           (long long)i);
    EXPECT(i % 9 == 0 || e[i].begin >= e[i - 1].end, "event %lld begins early", (long long)i);
  }
  OK(mscclsh_unload(prog, err, sizeof err));
}

// Buffers of the caller take part; too small ones are refused.
void test_attach() {
  Comm comm(2, 1, 0, 0);
  Program p = all_pairs(2);
  Case c = {2, 1, 1, 2, 256, 10, 0, 0, 2, 0, 0};
  Job j(&comm, p, c, 1);
  std::vector<float> out(20, -1.f);
  OK(mscclsh_attach(j.prog, 1, 1, out.data(), 80, err, sizeof err));
  mscclsh_size size = {};
  size.chunk_bytes = 40;
  size.regime = 1;
  OK(mscclsh_prepare(j.prog, &size, nullptr, err, sizeof err));
  j.fill(3);
  j.run(1);
  j.check(3, -1, "attached");
  EXPECT(double(out[19]) == reduced(2, 19, 3, 0, false), "the attached output is %g",
         double(out[19]));
  OK(mscclsh_attach(j.prog, 1, 1, out.data(), 79, err, sizeof err));
  EXPECT(mscclsh_prepare(j.prog, &size, nullptr, err, sizeof err) == MSCCLSH_EREFUSED,
         "79 bytes do");
}

// Conversions against all neighbors: the nearest value, of two the one with an even
// last bit.
template <class T>
void test_rounding(const char *name, uint32_t largest, bool saturates) {
  auto val = [](uint32_t b) { return double(T::widen(typename T::Bits(b))); };
  for (uint32_t b = 0; b < largest; b++) {
    const double low = val(b), high = val(b + 1), middle = (low + high) / 2;
    using Num = typename T::Num;
    EXPECT(T::round(Num(low)) == b, "%s: %g is not itself", name, low);
    EXPECT(T::round(Num(middle)) == b + b % 2, "%s: halfway from %g", name, low);
    EXPECT(T::round(Num(middle + (high - middle) / 64)) == b + 1, "%s: above %g", name, middle);
    EXPECT(T::round(Num(middle - (middle - low) / 64)) == b, "%s: below %g", name, middle);
    EXPECT(T::divide(typename T::Bits(b), 1) == b, "%s: %g over 1", name, low);
  }
  using Num = typename T::Num;
  const Num beyond = Num(val(largest)) * Num(4);
  EXPECT(T::round(beyond) == largest + (saturates ? 0 : 1), "%s: overflow", name);
  EXPECT(T::widen(T::round(Num(NAN))) != T::widen(T::round(Num(NAN))), "%s: NaN", name);
}

}  // namespace

int main(int argc, char **argv) {
  using namespace mscclsh;
  EXPECT(mscclsh_abi() == MSCCLSH_ABI, "version %d", mscclsh_abi());
  test_rounding<FP16>("fp16", 0x7bff, false);
  test_rounding<BF16>("bf16", 0x7f7f, false);
  test_rounding<FP8<3, -6, 0x7e, false>>("e4m3", 0x7e, true);
  test_rounding<FP8<2, -14, 0x7b, true>>("e5m2", 0x7b, true);
  struct {
    const char *name;
    void (*run)();
  } tests[] = {{"programs", test_programs}, {"types", test_types},
               {"long", test_long},         {"alternating", test_alternating},
               {"wrap", test_wrap},         {"graph", test_graph},
               {"watchdog", test_watchdog}, {"refusals", test_refusals},
               {"trace", test_trace},       {"attach", test_attach},
               {"nothing", test_nothing},   {"quick", test_quick},
               {"bound", test_bound},       {"answers", test_answers}};
  for (auto &t : tests) {
    if (argc > 1 && std::strcmp(argv[1], t.name)) continue;
    const int before = failures;
    t.run();
    std::printf("%-12s %s\n", t.name, failures == before ? "ok" : "FAILED");
  }
  std::printf("%d failures\n", failures);
  return failures != 0;
}
