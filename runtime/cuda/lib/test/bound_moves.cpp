// Calls that are launched with other buffers than those they were bound to.
#include "bound.h"

#include <future>
#include <memory>

#include "mscclsh_host_stream.h"

namespace {

// kSanitized is ThreadSanitizer, which does not know what packets order.
#if defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// Sets are one call a device and several sets of buffers that lie like those it was bound to.
struct Sets {
  Sets(Loaded &l, int64_t elems, int32_t regime, int64_t past, int32_t n = 3)
      : bound(l, elems, regime, past) {
    for (int32_t i = 0; i < n; i++) others.emplace_back(new Bound(l, elems, regime, past));
    for (auto &o : others) o->unbind();
  }
  void fill(int seed) {
    bound.fill(seed);
    for (size_t i = 0; i < others.size(); i++) others[i]->fill(seed + int(i) + 1);
  }
  // launch launches each set once, the bound one named in one round and not in the other.
  void launch(int round) {
    for (size_t i = 0; i < others.size(); i++) {
      if (i == size_t(round) % others.size()) round % 2 ? bound.launch() : bound.launch_at(bound);
      bound.launch_at(*others[(i + size_t(round)) % others.size()]);
    }
  }
  void check(int seed, const char *what) {
    bound.check(seed, -1, what);
    for (size_t i = 0; i < others.size(); i++) others[i]->check(seed + int(i) + 1, -1, what);
  }

  Bound bound;
  std::vector<std::unique_ptr<Bound>> others;
};

void run(Loaded &l, int64_t elems, int32_t regime, int64_t past, const char *what) {
  Sets s(l, elems, regime, past);
  for (int seed = 1; seed < 3; seed++) {
    s.fill(seed);
    s.launch(seed);
    OK(mscclsh_sync(l.on->comm, err, sizeof err));
    s.check(seed, what);
  }
}

// Every place of whole elements, with kernels for short programs and without, in place and
// not, with scratch.
void test_places() {
  const int32_t n = 3;
  for (int32_t protocol = 0; protocol < MSCCLSH_DIRECT; protocol++) {
    Case c = {n, n, protocol, 3, 1024, 0, 0, 0, 0, 0, 0};
    Comm comm(n, n, 0, 0);
    OK(mscclsh_reserve(comm.comm, n * 300 * 4, err, sizeof err));
    Loaded pairs(&comm, all_pairs(n), c), all(&comm, gather(n), c), split(&comm, split_ring(n), c);
    for (int64_t past = 0; past < MSCCLSH_PLACE / 4; past++) {
      run(pairs, 4, 1, past, "all pairs");
      run(all, past % 2 ? 8 : 5, 1, past, "gather");
    }
    for (int64_t past : {0, 1, 3, 4, 8, 31}) {
      run(pairs, 300, 1, past, "all pairs of several tiles");
      run(all, 300, 1, past, "gather of several tiles");
      if (!(kSanitized && protocol == MSCCLSH_LL)) run(split, 7, 1, past, "split ring");
    }
    Loaded ring2(&comm, ring(n, 2, 2), c);
    for (int64_t past : {0, 1, 8}) run(ring2, 20, 2, past, "ring");
  }
}

// Programs of more steps than lie in shared memory at once bring some at a time, and with
// several tiles the first ones anew.
void test_windows() {
  for (int32_t protocol = 0; protocol < MSCCLSH_DIRECT; protocol++)
    for (bool in_place : {false, true}) {
      Case c = {2, 2, protocol, 3, 128, 0, 0, 4, 3, 0, 0};
      Comm comm(2, 2, 0, 0);
      Loaded l(&comm, swaps(200, in_place), c), edge(&comm, swaps(64, in_place), c);
      for (int64_t past : {0, 1, 4}) {
        run(l, 4, 1, past, "swaps");
        run(l, 70, 1, past, "swaps of several tiles");
        run(edge, 4, 1, past, "swaps of one window");
      }
    }
}

// Averages divide where the output of the launch is.
void test_averages() {
  for (int32_t dtype = 0; dtype < 12; dtype++) {
    Case c = {4, 4, dtype % 3, 3, 512, 0, dtype, 4, 2, 0, 0};
    Comm comm(4, 4, 0, 0);
    OK(mscclsh_reserve(comm.comm, 4 * 70 * 8, err, sizeof err));
    Loaded l(&comm, all_pairs(4), c), all(&comm, gather(4), c);
    for (int64_t past : {0, 1, 2, 7}) {
      run(l, 70, 1, past, "averages");
      run(all, 16, 1, past, "averages in place");
    }
  }
}

// Calls with places of their own, of other sizes and programs, and a program as it is
// prepared, take turns; flags come round.
void test_turns() {
  for (int32_t protocol = 0; protocol < MSCCLSH_DIRECT; protocol++) {
    const int32_t n = 3;
    Case c = {n, n, protocol, 3, 512, 4, 0, 0, 0, 0, 32};
    Comm comm(n, n, 32, 0);
    OK(mscclsh_reserve(comm.comm, n * 300 * 4, err, sizeof err));
    Loaded pairs(&comm, all_pairs(n), c), all(&comm, gather(n), c);
    Sets a(pairs, 4, 1, 0), b(pairs, 300, 1, 0), d(pairs, 4, 1, 1), e(all, 4, 1, 0),
        f(all, 9, 1, 2);
    mscclsh_size prepared = b.bound.size;
    OK(mscclsh_prepare(pairs.prog, &prepared, nullptr, err, sizeof err));
    for (int32_t r = 0; r < n; r++) OK(mscclsh_fill(pairs.prog, r, 0, 0, err, sizeof err));
    Sets *sets[] = {&a, &b, &d, &e, &f};
    for (int k = 0; k < 12; k++) {
      for (Sets *s : sets) s->fill(k);
      for (int i = 0; i < 5; i++) {
        sets[(k + i * 2) % 5]->launch(k + i);
        if (i % 2 == k % 2) OK(mscclsh_enqueue(pairs.prog, 1, err, sizeof err));
      }
      OK(mscclsh_sync(comm.comm, err, sizeof err));
      for (Sets *s : sets) s->check(k, "turns");
    }
  }
}

// A launch keeps its buffers, however much later it runs and whatever the call is launched
// with in the meantime; so does its division. The launches of the first stream wait until
// all have been enqueued.
void test_late() {
  const int32_t n = 2, sets = 8;
  for (int32_t protocol = 0; protocol < MSCCLSH_DIRECT; protocol++) {
    Case c = {n, n, protocol, 3, 512, 0, 0, 4, 0, 0, 0};
    Comm comm(n, n, 0, 0);
    OK(mscclsh_reserve(comm.comm, n * 200 * 4, err, sizeof err));
    Loaded l(&comm, all_pairs(n), c);
    for (int64_t elems : {4, 200}) {
      Sets s(l, elems, 1, elems % 3, sets);
      mscclsh::HostStream streams[2][n];
      for (int k = 0; k < 6; k++) {
        s.fill(k);
        std::promise<void> gate;
        const std::shared_future<void> open = gate.get_future();
        for (int32_t d = 0; d < n; d++) mscclsh::run_on(&streams[0][d], [open] { open.wait(); });
        for (int32_t i = 0; i < sets; i++)
          for (int32_t d = 0; d < n; d++)
            s.bound.launch_at(*s.others[size_t((i + k) % sets)], d,
                              i == 0       ? &streams[0][d]
                              : i % 3 == 1 ? nullptr
                                           : static_cast<void *>(&streams[i % 2][d]));
        s.bound.launch();
        gate.set_value();
        OK(mscclsh_sync(comm.comm, err, sizeof err));
        s.check(k, "late launches");
      }
    }
  }
}

// What lies otherwise than the call was bound to is refused, and nothing is launched.
void test_refusals() {
  const int32_t n = 2;
  Case c = {n, n, 1, 3, 512, 0, 0, 0, 0, 0, 0};
  Comm comm(n, n, 0, 0);
  OK(mscclsh_reserve(comm.comm, n * 32, err, sizeof err));
  Loaded pairs(&comm, all_pairs(n), c), rings(&comm, ring(n, 1, 1), c), line(&comm, chain(n, 0), c);
  // Of two chunks of 32 bytes. Rank 0's input is bound 4 bytes past a boundary and its output
  // 8, rank 1's input 8.
  Bound p(pairs, 8, 1, 1), r(rings, 8, 1, 1), h(line, 8, 1, 1);
  auto refuse = [&](Bound &b, int32_t device, void *const *buffers, const char *want) {
    EXPECT(mscclsh_call_at(b.calls[size_t(device)], buffers, nullptr, err, sizeof err) ==
                   MSCCLSH_EINVAL &&
               told(want),
           "got %s, want %s", err, want);
  };
  auto with = [](const Bound &b, size_t i, void *at) {
    std::vector<void *> to = b.buffers;
    to[i] = at;
    return to;
  };
  auto moved = [&](const Bound &b, size_t i, int64_t by) {
    return with(b, i, static_cast<char *>(b.buffers[i]) + by);
  };
  refuse(p, 0, nullptr, "a launch without buffers");
  refuse(p, 0, moved(p, 0, 64).data(), "is 68 bytes past a multiple of 128, but was 4 when");
  refuse(p, 0, moved(p, 1, -4).data(), "the output of rank 0 at");
  refuse(p, 1, moved(p, 2, 4).data(), "is 12 bytes past a multiple of 128, but was 8 when");
  refuse(p, 0, with(p, 1, nullptr).data(), "the output of rank 0 is null");
  alignas(MSCCLSH_PLACE) unsigned char memory[3 * MSCCLSH_PLACE];
  std::vector<void *> at = with(p, 0, memory + 4);
  at[1] = memory + 8;
  refuse(p, 0, at.data(), "input and output of rank 0 overlap");
  // In place the output is the input, named or not.
  refuse(r, 0, with(r, 1, static_cast<char *>(r.buffers[0]) + 4).data(),
         "the output of rank 0 is given at");
  // A chain has no use for the inputs of others than its root.
  refuse(h, 0, with(h, 0, nullptr).data(), "the input of rank 0 is null");
  h.fill(3);
  OK(mscclsh_call_at(h.calls[0], with(h, 2, nullptr).data(), nullptr, err, sizeof err));
  OK(mscclsh_call_at(h.calls[1], with(h, 2, memory + 1).data(), nullptr, err, sizeof err));
  r.fill(4);
  OK(mscclsh_call_at(r.calls[0], with(r, 1, r.buffers[0]).data(), nullptr, err, sizeof err));
  OK(mscclsh_call_at(r.calls[1], r.buffers.data(), nullptr, err, sizeof err));
  p.fill(5);
  at = with(p, 0, memory + 4);
  at[1] = memory + MSCCLSH_PLACE + 8;
  std::memcpy(memory + 4, p.buffers[0], 64);
  OK(mscclsh_call_at(p.calls[0], at.data(), nullptr, err, sizeof err));
  OK(mscclsh_call_at(p.calls[1], p.buffers.data(), nullptr, err, sizeof err));
  OK(mscclsh_sync(comm.comm, err, sizeof err));
  h.check(3, 0, "chain");
  r.check(4, -1, "ring");
  EXPECT(std::memcmp(at[1], p.result(1), 64) == 0, "the output is not where it was wanted");
}

// Calls that have the buffers that they were bound to.
void test_fixed() {
  for (int32_t devices : {1, 2}) {
    const int32_t protocol = devices == 1 ? MSCCLSH_LL : MSCCLSH_DIRECT;
    Case c = {2, devices, protocol, 3, 512, 0, 0, 0, 0, 0, 0};
    Comm comm(2, devices, 0, 0);
    OK(mscclsh_reserve(comm.comm, 64, err, sizeof err));
    Loaded l(&comm, all_pairs(2), c);
    Bound b(l, 8, 1, 0);
    EXPECT(
        mscclsh_call_at(b.calls[0], b.buffers.data(), nullptr, err, sizeof err) == MSCCLSH_EINVAL &&
            told(devices == 1 ? "several ranks share a device" : "protocol Direct"),
        "got %s", err);
    b.fill(1);
    b.launch();
    OK(mscclsh_sync(comm.comm, err, sizeof err));
    b.check(1, -1, "fixed");
  }
}

}  // namespace

void test_bound_moves() {
  test_places();
  test_windows();
  test_averages();
  test_turns();
  test_late();
  test_refusals();
  test_fixed();
}
