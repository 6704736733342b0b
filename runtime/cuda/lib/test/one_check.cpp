// Tests of one-sided programs through the C interface, on the host build.
#include <cstdint>
#include <functional>

#include "job.h"
#include "one_programs.h"

namespace {

// OneJob is a program loaded and prepared on a communicator, for sums of int32. Every
// element of rank r's input is its own: see one_input.
struct OneJob {
  OneJob(Comm *on, const OneProgram &program, int64_t chunk_elems, int32_t threads)
      : p(program), chunk(chunk_elems) {
    const mscclsh_one_program flat = p.flatten();
    OK(mscclsh_one_load(on->comm, &flat, &prog, err, sizeof err));
    if (prog != nullptr) prepare(chunk_elems, threads);
  }
  ~OneJob() { OK(mscclsh_unload(prog, err, sizeof err)); }

  void prepare(int64_t chunk_elems, int32_t threads) {
    chunk = chunk_elems;
    mscclsh_size size = {};
    size.chunk_bytes = 4 * chunk;
    size.regime = 1;
    size.dtype = 8;  // int32
    size.threads = threads;
    OK(mscclsh_prepare(prog, &size, &info, err, sizeof err));
  }

  void fill(int seed) {
    std::vector<int32_t> data(size_t(p.chunks[0] * chunk));
    for (int32_t r = 0; r < p.ranks; r++) {
      for (size_t i = 0; i < data.size(); i++) data[i] = one_input(r, int64_t(i), seed);
      OK(mscclsh_upload(prog, r, kIn, 0, data.data(), int64_t(4 * data.size()), err, sizeof err));
      OK(mscclsh_fill(prog, r, kOut, 0xee, err, sizeof err));
    }
  }

  // check wants element i of chunk c of rank r's output to be want(r, c, i).
  void check(const char *what, const std::function<int32_t(int32_t, int32_t, int64_t)> &want) {
    OK(mscclsh_check_guards(prog, err, sizeof err));
    std::vector<int32_t> data(size_t(p.chunks[1] * chunk));
    for (int32_t r = 0; r < p.ranks; r++) {
      OK(mscclsh_download(prog, r, kOut, 0, data.data(), int64_t(4 * data.size()), err,
                          sizeof err));
      for (size_t i = 0; i < data.size(); i++) {
        const int32_t w = want(r, int32_t(int64_t(i) / chunk), int64_t(i) % chunk);
        if (data[i] == w) continue;
        EXPECT(false, "%s: rank %d element %zu is %d, want %d", what, r, i, data[i], w);
        return;
      }
    }
  }

  OneProgram p;
  int64_t chunk;
  mscclsh_prog *prog = nullptr;
  mscclsh_prepared info = {};
};

// stages is a copy in three thread blocks that hand units of 64 bytes on by semaphores,
// through scratch that has room for all, and meet at the end.
OneProgram stages() {
  OneProgram p(1, 2, 2, 2);
  const int32_t to_second = 1;
  p.block(0);
  p.op(MSCCLSH_OP_BARRIER, 0, {5}).parts = 3;
  p.pipeline(64, 2, [&] {
    p.op(MSCCLSH_OP_COPY, 0, {}, {{0, kIn, 0, 2}}, {{0, kScratch, 0, 2}});
    p.nop();
    p.op(MSCCLSH_OP_SEM_RELEASE, 0, {to_second});
  });
  p.block(0);
  p.op(MSCCLSH_OP_BARRIER, 0, {5}).parts = 3;
  p.pipeline(64, 2, [&] {
    p.op(MSCCLSH_OP_SEM_ACQUIRE, 0, {to_second});
    p.nop();
    p.op(MSCCLSH_OP_COPY, 0, {}, {{0, kScratch, 0, 2}}, {{0, kOut, 0, 2}});
  });
  p.block(0);
  p.op(MSCCLSH_OP_BARRIER, 0, {5}).parts = 3;
  return p;
}

// Several launches in a row, several sizes and numbers of threads.
void test_launches() {
  for (int32_t n : {2, 3}) {
    for (int32_t threads : {1, 3}) {
      for (int64_t elems : {4, 20, 500}) {
        Comm comm(n, 2, 0, 0);
        OneJob memory(&comm, gather_all(n, false), elems, threads);
        OneJob ports(&comm, gather_all(n, true), elems, threads);
        OneJob packets(&comm, reduce_all(n), elems, threads);
        for (int k = 0; k < 3; k++) {
          for (OneJob *j : {&memory, &ports, &packets}) {
            j->fill(k);
            OK(mscclsh_enqueue(j->prog, 5, err, sizeof err));
          }
          OK(mscclsh_sync(comm.comm, err, sizeof err));
          memory.check("memory", gather_of(k));
          ports.check("ports", gather_of(k));
          packets.check("packets", sum_of(n, k));
        }
      }
    }
  }
}

void test_stages() {
  Comm comm(1, 1, 0, 0);
  for (int64_t elems : {4, 100, 1000}) {
    OneJob j(&comm, stages(), elems, 2);
    j.fill(3);
    OK(mscclsh_enqueue(j.prog, 4, err, sizeof err));
    OK(mscclsh_sync(comm.comm, err, sizeof err));
    j.check("stages",
            [&](int32_t, int32_t c, int64_t i) { return one_input(0, c * elems + i, 3); });
  }
}

// Flags come round often, with two halves of scratch; a program is prepared anew in
// between, and another of sends and receives shares the communicator.
void test_mixed() {
  const int32_t n = 3;
  Comm comm(n, 3, 16, 0);
  Program two = ring(n, 1, 1);
  Case c = {n, 3, 1, 2, 128, 100, 0, 0, 2, 0, 16};
  Job ring(&comm, two, c, 1);
  OneJob packets(&comm, reduce_all(n), 8, 2), ports(&comm, gather_all(n, true), 8, 2);
  for (int k = 0; k < 60; k++) {
    if (k % 20 == 19) packets.prepare(4 + k % 3 * 4, 1 + k % 2);
    packets.fill(k);
    ports.fill(k);
    ring.fill(k);
    OK(mscclsh_enqueue(packets.prog, 1 + k % 5, err, sizeof err));
    OK(mscclsh_enqueue(ring.prog, 1, err, sizeof err));
    OK(mscclsh_enqueue(ports.prog, k % 2 + 1, err, sizeof err));
    OK(mscclsh_sync(comm.comm, err, sizeof err));
    packets.check("packets among others", sum_of(n, k));
    ports.check("ports among others", gather_of(k));
    ring.check(k, -1, "sends and receives among others");
  }
}

// Memory of the caller's takes the place of the library's, and a graph is replayed.
void test_attached() {
  const int32_t n = 2;
  Comm comm(n, 2, 0, 0);
  OneJob j(&comm, reduce_all(n), 64, 2);
  void *memory[n] = {};
  for (int32_t r = 0; r < n; r++) {
    OK(mscclsh_alloc(comm.comm, r, 256, &memory[r], err, sizeof err));
    OK(mscclsh_attach(j.prog, r, kIn, memory[r], 256, err, sizeof err));
  }
  j.prepare(64, 2);
  OK(mscclsh_capture(j.prog, 3, err, sizeof err));
  for (int k = 0; k < 5; k++) {
    j.fill(k);
    double ns = 0;
    OK(mscclsh_replay(j.prog, 2, &ns, err, sizeof err));
    j.check("attached and replayed", sum_of(n, k));
  }
  for (int32_t r = 0; r < n; r++) {
    OK(mscclsh_attach(j.prog, r, kIn, nullptr, 0, err, sizeof err));
    OK(mscclsh_free(comm.comm, r, memory[r], err, sizeof err));
  }
  j.prepare(64, 2);
}

// stuck runs a program that can't end, and wants the record of who waits for what.
void stuck(const OneProgram &p, int32_t waits_for, int32_t step, const char *words) {
  Comm comm(p.ranks, p.ranks, 0, 50000000);
  OneJob j(&comm, p, 16, 2);
  j.fill(0);
  double ns = 0;
  const int32_t got = mscclsh_run(j.prog, 1, &ns, err, sizeof err);
  EXPECT(got == MSCCLSH_ESTUCK, "%s: a stuck program gives %d, %s", words, got, err);
  EXPECT(std::strstr(err, words) != nullptr, "%s is not in: %s", words, err);
  mscclsh_wait w[8];
  int64_t have = 0;
  OK(mscclsh_waits(comm.comm, w, 8, &have, err, sizeof err));
  EXPECT(have >= 1 && w[0].waits_for == waits_for && w[0].step == step && w[0].timed_out == 1,
         "%s: record %lld of %d waits for %d in step %d", words, (long long)have, w[0].rank,
         w[0].waits_for, w[0].step);
  EXPECT(mscclsh_run(j.prog, 1, &ns, err, sizeof err) == MSCCLSH_EDEAD, "it is dead: %s", err);
}

void test_watchdog() {
  OneProgram signal(2, 1, 1, 1);
  signal.block(0);
  signal.op(MSCCLSH_OP_WAIT, MSCCLSH_VIA_MEMORY, {0});
  signal.block(1);
  stuck(signal, MSCCLSH_WAIT_SIGNAL, 0, "a signal of rank 1 on its channel 0");
  OneProgram semaphore(1, 1, 1, 1);
  semaphore.block(0);
  semaphore.op(MSCCLSH_OP_SEM_ACQUIRE, 0, {0, 1});  // they start at 1 and 0
  stuck(semaphore, MSCCLSH_WAIT_SEMAPHORE, 0, "semaphore 1");
  OneProgram barrier(1, 1, 1, 1);
  barrier.block(0);
  barrier.nop();
  barrier.op(MSCCLSH_OP_BARRIER, 0, {3}).parts = 2;
  stuck(barrier, MSCCLSH_WAIT_BARRIER, 1, "thread blocks at barrier 3");
  OneProgram packet(1, 1, 1, 1);
  packet.packets = 1;
  packet.block(0);
  packet.op(MSCCLSH_OP_UPKT, 0, {}, {{0, kScratch, 0, 1, 1}}, {{0, kOut, 0}});
  stuck(packet, MSCCLSH_WAIT_PACKET, 0, "a packet in its scratch");
}

// refused wants a program to be refused at once.
void refused(const char *what, const OneProgram &p, int32_t code) {
  Comm comm(p.ranks, 1, 0, 0);
  const mscclsh_one_program flat = p.flatten();
  mscclsh_prog *prog = nullptr;
  const int32_t got = mscclsh_one_load(comm.comm, &flat, &prog, err, sizeof err);
  EXPECT(got == code, "%s: got %d (%s), want %d", what, got, err, code);
}

void test_refusals() {
  auto with = [](const std::function<void(OneProgram *)> &f) {
    OneProgram p(2, 1, 1, 1);
    p.block(0);
    f(&p);
    return p;
  };
  refused("multicast", with([](OneProgram *p) {
            p->op(MSCCLSH_OP_GSTORE, MSCCLSH_VIA_SWITCH, {}, {{0, kIn, 0}}, {{0, kOut, 0}});
          }),
          MSCCLSH_EREFUSED);
  refused("bounds",
          with([](OneProgram *p) { p->op(MSCCLSH_OP_COPY, 0, {}, {{0, kIn, 1}}, {{0, kOut, 0}}); }),
          MSCCLSH_EINVAL);
  refused("rank", with([](OneProgram *p) {
            p->op(MSCCLSH_OP_GET, MSCCLSH_VIA_MEMORY, {}, {{2, kIn, 0}}, {{0, kOut, 0}});
          }),
          MSCCLSH_EINVAL);
  refused("packets", with([](OneProgram *p) {
            p->op(MSCCLSH_OP_CPKT, 0, {}, {{0, kIn, 0}}, {{0, kScratch, 0, 1, 1}});
          }),
          MSCCLSH_EINVAL);
  refused("channel", with([](OneProgram *p) { p->op(MSCCLSH_OP_SIGNAL, MSCCLSH_VIA_MEMORY, {9}); }),
          MSCCLSH_EINVAL);
  refused("no end", with([](OneProgram *p) {
            p->channels[0].pair = -1;
            p->op(MSCCLSH_OP_SIGNAL, MSCCLSH_VIA_MEMORY, {0});
          }),
          MSCCLSH_EINVAL);
  refused("semaphore", with([](OneProgram *p) { p->op(MSCCLSH_OP_SEM_ACQUIRE, 0, {2}); }),
          MSCCLSH_EINVAL);
  refused("part", with([](OneProgram *p) {
            p->op(MSCCLSH_OP_COPY, 0, {}, {{0, kIn, 0}}, {{0, kOut, 0}}).part = 1;
          }),
          MSCCLSH_EINVAL);
  refused("kind", with([](OneProgram *p) { p->op(30); }), MSCCLSH_EINVAL);
  refused("ports", with([](OneProgram *p) {
            p->op(MSCCLSH_OP_PUT, MSCCLSH_VIA_PORT, {}, {{0, kIn, 0}}, {{1, kOut, 0}});
          }),
          MSCCLSH_EINVAL);
}

}  // namespace

// test_one_calls, in one_calls.cpp, binds them.
void test_one_calls();

int main() {
  test_launches();
  test_stages();
  test_mixed();
  test_attached();
  test_watchdog();
  test_refusals();
  test_one_calls();
  std::printf("one-sided programs: %d failures\n", failures);
  return failures != 0;
}
