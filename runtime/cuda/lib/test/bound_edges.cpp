// What bound calls refuse, windows, and the end of a communicator by any thread.
#include "bound.h"

#include <atomic>
#include <chrono>
#include <thread>

namespace {

// What is bound where, and with what, is looked at before anything runs.
void test_refusals() {
  const int32_t n = 2;
  Case c = {n, 2, 1, 3, 512, 0, 0, 0, 0, 0, 0};
  Comm comm(n, 2, 0, 0);
  Loaded pairs(&comm, all_pairs(n), c), rings(&comm, ring(n, 1, 1), c), line(&comm, chain(n, 0), c);
  alignas(16) float memory[4][64] = {};
  void *good[4] = {memory[0], memory[1], memory[2], memory[3]};
  mscclsh_size size = {};
  size.chunk_bytes = 32;
  size.regime = 1;
  mscclsh_call *call = nullptr;
  auto bind = [&](Loaded &l, void *const *buffers, int32_t device, const char *want) {
    mscclsh_binding b = {};
    b.size = &size;
    b.buffers = buffers;
    b.device = device;
    const int32_t result = mscclsh_bind(l.prog, &b, &call, nullptr, err, sizeof err);
    EXPECT((result == MSCCLSH_OK) == (want == nullptr), "got %d, %s, want %s", result, err,
           want ? want : "success");
    if (want != nullptr) EXPECT(told(want), "got %s, want %s", err, want);
    if (result == MSCCLSH_OK) OK(mscclsh_unbind(call, err, sizeof err));
  };
  bind(pairs, good, 0, "rank 0 needs 64 bytes of scratch, reserved are 0");
  OK(mscclsh_reserve(comm.comm, 63, err, sizeof err));
  bind(pairs, good, 0, "rank 0 needs 64 bytes of scratch, reserved are 63");
  OK(mscclsh_reserve(comm.comm, 64, err, sizeof err));
  bind(pairs, good, 0, nullptr);
  bind(pairs, good, 2, "no rank of this process is on device 2");
  void *null[4] = {memory[0], nullptr, memory[2], memory[3]};
  bind(pairs, null, 0, "the output of rank 0 is null");
  bind(pairs, null, 1, nullptr);  // that is another device's
  void *crooked[4] = {reinterpret_cast<char *>(memory[0]) + 2, memory[1], memory[2], memory[3]};
  bind(pairs, crooked, 0, "does not start at a whole element of 4 bytes");
  void *over[4] = {memory[0], memory[0] + 15, memory[2], memory[3]};
  bind(pairs, over, 0, "input and output of rank 0 overlap");
  over[1] = memory[0] + 16;  // right behind it
  bind(pairs, over, 0, nullptr);
  // In place the output is the input: named or not, but not elsewhere.
  void *place[4] = {memory[0], memory[0], memory[2], nullptr};
  bind(rings, place, 0, nullptr);
  bind(rings, place, 1, nullptr);
  place[1] = memory[0] + 1;
  bind(rings, place, 0, "the output of rank 0 is given at");
  // A chain has no use for the inputs of others than its root.
  void *rooted[4] = {memory[0], memory[1], nullptr, memory[3]};
  bind(line, rooted, 1, nullptr);
  rooted[2] = memory[3];
  bind(line, rooted, 1, nullptr);
  rooted[0] = nullptr;
  bind(line, rooted, 0, "the input of rank 0 is null");

  size.trace = 1;
  bind(pairs, good, 0, "neither a misalignment nor a trace");
  size.trace = 0;
  size.chunk_bytes = 30;
  bind(pairs, good, 0, "chunks of 30 bytes");
  size.chunk_bytes = 0;
  void *none[4] = {};
  bind(pairs, none, 0, nullptr);
  size.chunk_bytes = 32;
}

// What is bound holds the program and the scratch; what can't be resident is told before.
void test_holding() {
  const int32_t n = 2;
  Case c = {n, 2, 1, 3, 512, 0, 0, 0, 0, 0, 0};
  Comm comm(n, 2, 0, 0);
  OK(mscclsh_reserve(comm.comm, 64, err, sizeof err));
  Loaded pairs(&comm, all_pairs(n), c);
  alignas(16) float memory[4][64] = {};
  void *good[4] = {memory[0], memory[1], memory[2], memory[3]};
  mscclsh_size size = {};
  size.chunk_bytes = 32;
  size.regime = 1;
  mscclsh_call *call = nullptr;
  mscclsh_binding b = {};
  b.size = &size;
  b.buffers = good;
  OK(mscclsh_bind(pairs.prog, &b, &call, nullptr, err, sizeof err));
  EXPECT(mscclsh_unload(pairs.prog, err, sizeof err) == MSCCLSH_EINVAL && told("1 bound call"),
         "got %s", err);
  EXPECT(mscclsh_reserve(comm.comm, 100, err, sizeof err) == MSCCLSH_EINVAL &&
             told("calls are bound that use the scratch"),
         "got %s", err);
  OK(mscclsh_reserve(comm.comm, 64, err, sizeof err));  // it is there
  OK(mscclsh_unbind(call, err, sizeof err));
  OK(mscclsh_unbind(nullptr, err, sizeof err));
  EXPECT(mscclsh_reserve(comm.comm, -1, err, sizeof err) == MSCCLSH_EINVAL, "got %s", err);

  mscclsh_prepared fit = {};
  OK(mscclsh_fits(pairs.prog, 0, 4, 0, &fit, err, sizeof err));
  EXPECT(fit.blocks_needed == 2 && fit.blocks_resident >= 2 && fit.threads == 4,
         "%d blocks needed, %d fit", fit.blocks_needed, fit.blocks_resident);
  EXPECT(mscclsh_fits(pairs.prog, 99, 0, 0, &fit, err, sizeof err) == MSCCLSH_EINVAL, "got %s",
         err);
  Loaded big(&comm, ring(n, 600, 1), c);
  EXPECT(mscclsh_fits(big.prog, 0, 0, 4, &fit, err, sizeof err) == MSCCLSH_EREFUSED &&
             told("needs 600 thread blocks of 4 threads at once, but 500 fit"),
         "got %s", err);
}

// Direct finds peers' buffers in windows, at offsets of the caller's.
void test_windows() {
  const int32_t n = 3;
  Case c = {n, 3, MSCCLSH_DIRECT, 0, 0, 0, 0, 0, 2, 0, 0};
  Comm comm(n, 3, 0, 0);
  OK(mscclsh_reserve(comm.comm, n * 40 * 4, err, sizeof err));
  Loaded l(&comm, all_pairs(n), c), rings(&comm, split_ring(n), c);
  const int64_t bytes = n * 40 * 4;
  std::vector<Buffer> ins, outs;
  std::vector<void *> in(n), out(n);
  std::vector<int64_t> in_bytes(n, bytes + 100), out_bytes(n, bytes + 8);
  for (int32_t r = 0; r < n; r++) {
    ins.emplace_back(bytes + 100, 4 * r);
    outs.emplace_back(bytes + 8, 0);
  }
  for (size_t r = 0; r < size_t(n); r++) {
    in[r] = ins[r].at();
    out[r] = outs[r].at();
  }
  mscclsh_window *windows[2] = {};
  OK(mscclsh_window_open(comm.comm, in.data(), in_bytes.data(), &windows[0], err, sizeof err));
  OK(mscclsh_window_open(comm.comm, out.data(), out_bytes.data(), &windows[1], err, sizeof err));
  mscclsh_size size = {};
  size.chunk_bytes = 40 * 4;
  size.regime = 1;
  mscclsh_binding b = {};
  b.size = &size;
  b.windows = windows;
  b.offset[0] = 100;
  b.offset[1] = 4;
  for (int seed = 0; seed < 3; seed++) {
    std::vector<mscclsh_call *> calls;
    for (int32_t r = 0; r < n; r++) {
      for (int64_t i = 0; i < n * 40; i++)
        reinterpret_cast<float *>(ins[size_t(r)].at() + 100)[i] = float(value(r, i, seed));
      b.device = r;
      calls.push_back(nullptr);
      OK(mscclsh_bind(l.prog, &b, &calls.back(), nullptr, err, sizeof err));
    }
    for (mscclsh_call *call : calls) OK(mscclsh_call_on(call, nullptr, err, sizeof err));
    OK(mscclsh_sync(comm.comm, err, sizeof err));
    int64_t wrong = 0;
    for (int32_t r = 0; r < n; r++)
      for (int64_t i = 0; i < n * 40; i++)
        wrong += double(reinterpret_cast<float *>(outs[size_t(r)].at() + 4)[i]) !=
                 reduced(n, i, seed, 0, false);
    EXPECT(wrong == 0, "%lld elements in windows are wrong", (long long)wrong);
    for (int32_t r = 0; r < n; r++)
      EXPECT(ins[size_t(r)].edges() && outs[size_t(r)].edges(), "bytes beside a window of rank %d",
             r);
    EXPECT(mscclsh_window_close(windows[0], err, sizeof err) == MSCCLSH_EINVAL &&
               told("3 bound calls"),
           "got %s", err);
    for (mscclsh_call *call : calls) OK(mscclsh_unbind(call, err, sizeof err));
  }
  mscclsh_call *call = nullptr;
  auto refuse = [&](mscclsh_prog *prog, const char *want) {
    EXPECT(mscclsh_bind(prog, &b, &call, nullptr, err, sizeof err) == MSCCLSH_EINVAL && told(want),
           "got %s, want %s", err, want);
  };
  b.offset[0] = 104;
  refuse(l.prog, "the input of rank 0 ends 480 bytes after byte 104 of a window of 580");
  b.offset[0] = -4;
  refuse(l.prog, "after byte -4");
  b.offset[0] = 2;
  refuse(l.prog, "does not start at a whole element");
  b.offset[0] = 100;
  mscclsh_window *one[2] = {windows[0], nullptr};
  b.windows = one;
  refuse(l.prog, "no window is given for the output");
  OK(mscclsh_bind(rings.prog, &b, &call, nullptr, err, sizeof err));  // in place
  OK(mscclsh_unbind(call, err, sizeof err));
  std::vector<void *> elsewhere(2 * n, nullptr);
  elsewhere[4] = ins[2].at() + 96;
  b.buffers = elsewhere.data();
  b.windows = windows;
  refuse(l.prog, "the input of rank 2 is given at");
  elsewhere[4] = ins[2].at() + 100;
  OK(mscclsh_bind(l.prog, &b, &call, nullptr, err, sizeof err));
  OK(mscclsh_unbind(call, err, sizeof err));
  c.protocol = 1;
  c.slots = 2;
  c.slot_bytes = 256;
  Loaded slots(&comm, all_pairs(n), c);
  refuse(slots.prog, "windows are for programs of protocol Direct");
  Comm another(n, 3, 0, 0);
  Case d = {n, 3, MSCCLSH_DIRECT, 0, 0, 0, 0, 0, 2, 0, 0};
  Loaded there(&another, all_pairs(n), d);
  refuse(there.prog, "the input's window is of another communicator");
  EXPECT(mscclsh_comm_destroy(comm.comm, err, sizeof err) == MSCCLSH_EINVAL, "it has programs");
  for (mscclsh_window *w : windows) OK(mscclsh_window_close(w, err, sizeof err));
  OK(mscclsh_window_close(nullptr, err, sizeof err));
  in_bytes[1] = -1;
  EXPECT(mscclsh_window_open(comm.comm, in.data(), in_bytes.data(), &windows[0], err, sizeof err) ==
             MSCCLSH_EINVAL,
         "got %s", err);
}

// Memory that was freed and allocated anew, even at the same address, is other memory.
void test_identity() {
  Comm comm(2, 2, 0, 0);
  std::vector<uint64_t> seen;
  for (int k = 0; k < 20; k++) {
    void *memory = nullptr;
    uint64_t id = 0, inside = 0;
    OK(mscclsh_alloc(comm.comm, 0, 1000, &memory, err, sizeof err));
    OK(mscclsh_identity(comm.comm, 0, memory, 1000, &id, err, sizeof err));
    OK(mscclsh_identity(comm.comm, 0, static_cast<char *>(memory) + 600, 400, &inside, err,
                        sizeof err));
    EXPECT(id != 0 && id == inside, "%llu and %llu", (unsigned long long)id,
           (unsigned long long)inside);
    for (uint64_t s : seen) EXPECT(s != id, "%llu came twice", (unsigned long long)id);
    seen.push_back(id);
    EXPECT(mscclsh_identity(comm.comm, 0, memory, 1001, &id, err, sizeof err) == MSCCLSH_EREFUSED &&
               told("reach beyond"),
           "got %s", err);
    OK(mscclsh_free(comm.comm, 0, memory, err, sizeof err));
  }
  uint64_t id = 1;
  int here = 0;
  OK(mscclsh_identity(comm.comm, 1, &here, 4, &id, err, sizeof err));
  EXPECT(id == 0, "%llu", (unsigned long long)id);
}

// hang makes a program in which rank 0 waits for what nobody sends.
Program hang() {
  Program p(2);
  p.chunks_total = 1;
  p.chunks[1] = 1;
  mscclsh_step &s = p.step(0, p.block(0), MSCCLSH_RECV);
  s.recv_peer = 1;
  s.dst_buf = 1;
  p.step(1, p.block(1), MSCCLSH_NOP);
  return p;
}

double seconds_since(std::chrono::steady_clock::time_point t) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - t).count();
}

// A thread ends what another one waits for, long before the watchdog would.
void test_abort() {
  for (int32_t protocol = 0; protocol < MSCCLSH_DIRECT; protocol++) {
    Comm comm(2, 2, 0, int64_t(600) * 1000000000);
    Case c = {2, 2, protocol, 2, 256, 0, 0, 0, 2, 0, 0};
    Loaded l(&comm, hang(), c);
    Bound b(l, 9, 1, 0);
    OK(mscclsh_poll(comm.comm, err, sizeof err));
    b.launch();
    const auto begin = std::chrono::steady_clock::now();
    std::atomic<int32_t> polled{MSCCLSH_OK};
    std::thread watcher([&] {
      char text[256];
      while (polled == MSCCLSH_OK && seconds_since(begin) < 60)
        polled = mscclsh_poll(comm.comm, text, sizeof text);
    });
    std::thread killer([&] {
      char text[256];
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      if (mscclsh_abort(comm.comm, text, sizeof text) != MSCCLSH_OK) polled = -1;
    });
    EXPECT(mscclsh_sync(comm.comm, err, sizeof err) == MSCCLSH_EDEAD && told("aborted"), "got %s",
           err);
    watcher.join();
    killer.join();
    EXPECT(polled == MSCCLSH_EDEAD, "poll says %d", polled.load());
    EXPECT(seconds_since(begin) < 60, "it took %.0f s", seconds_since(begin));
    EXPECT(mscclsh_call_on(b.calls[0], nullptr, err, sizeof err) == MSCCLSH_EDEAD, "got %s", err);
    mscclsh_binding binding = {};
    EXPECT(mscclsh_bind(l.prog, &binding, &b.calls[0], nullptr, err, sizeof err) == MSCCLSH_EDEAD,
           "got %s", err);
    EXPECT(mscclsh_reserve(comm.comm, 1, err, sizeof err) == MSCCLSH_EDEAD, "got %s", err);
    EXPECT(mscclsh_prepare(l.prog, &b.size, nullptr, err, sizeof err) == MSCCLSH_EDEAD, "got %s",
           err);
  }
  // The watchdog's end is told as that, and who waited by the next call that waits.
  Comm comm(2, 2, 0, 200000000);
  Case c = {2, 2, 1, 2, 256, 0, 0, 0, 2, 0, 0};
  Loaded l(&comm, hang(), c);
  Bound b(l, 9, 1, 0);
  b.launch();
  const auto begin = std::chrono::steady_clock::now();
  int32_t result = MSCCLSH_OK;
  while (result == MSCCLSH_OK && seconds_since(begin) < 60)
    result = mscclsh_poll(comm.comm, err, sizeof err);
  EXPECT(result == MSCCLSH_ESTUCK && told("watchdog"), "got %d, %s", result, err);
  EXPECT(mscclsh_sync(comm.comm, err, sizeof err) == MSCCLSH_ESTUCK &&
             told("rank 0 thread block 0 in step 0 of tile 0 for a message from rank 1"),
         "got %s", err);
}

}  // namespace

void test_bound_edges() {
  test_refusals();
  test_holding();
  test_windows();
  test_identity();
  test_abort();
}
