// Programs bound to sizes and to buffers of the caller's.
#include "bound.h"

#include <memory>

#include "mscclsh_host_stream.h"

namespace {

// kSanitized is ThreadSanitizer, which does not know what packets order.
#if defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

void run(Loaded &l, int64_t elems, int32_t regime, int64_t past, int32_t root, const char *what) {
  Bound b(l, elems, regime, past);
  for (int seed = 1; seed < 3; seed++) {
    b.fill(seed);
    b.launch();
    OK(mscclsh_sync(l.on->comm, err, sizeof err));
    b.check(seed, root, what);
  }
}

// Every protocol, with buffers that start anywhere, on one device and on several that are
// bound one by one.
void test_values() {
  for (int32_t protocol = 0; protocol <= MSCCLSH_DIRECT; protocol++)
    for (int32_t devices : {1, 2, 4}) {
      Case c = {4, devices, protocol, 3, 1024, 0, 0, 0, 3, 0, 0};
      Comm comm(4, devices, 0, 0);
      OK(mscclsh_reserve(comm.comm, 4 * 501 * 4, err, sizeof err));
      Loaded pairs(&comm, all_pairs(4), c), split(&comm, split_ring(4), c);
      Loaded line(&comm, chain(4, 1), c);
      for (int64_t elems : {1, 7, 64, 501})
        for (int64_t past : {0, 1, 2}) {
          run(pairs, elems, 1, past, -1, "all pairs");
          if (!(kSanitized && protocol == MSCCLSH_LL)) run(split, elems, 1, past, -1, "split ring");
          run(line, elems, 1, past, 1, "chain");
        }
      if (protocol == MSCCLSH_DIRECT) continue;
      Loaded ring2(&comm, ring(4, 2, 2), c), all(&comm, gather(4), c);
      run(ring2, 30, 2, 1, -1, "ring");
      run(all, 130, 1, 1, -1, "gather");
    }
  for (int32_t dtype = 0; dtype < 12; dtype++) {
    Case c = {4, 2, dtype % 4, 3, 512, 0, dtype, 4, 2, 0, 0};
    Comm comm(4, 2, 0, 0);
    OK(mscclsh_reserve(comm.comm, 4 * 70 * 8, err, sizeof err));
    Loaded l(&comm, all_pairs(4), c);
    run(l, 70, 1, dtype % 3, -1, "averages");
  }
}

// Calls of one program that differ in tiles and in the kernel that runs them take turns,
// and the program as it is prepared comes between: what is posted and counted goes on.
void test_turns() {
  for (int32_t protocol = 0; protocol <= MSCCLSH_DIRECT; protocol++) {
    const int32_t n = 3, modulus = protocol == MSCCLSH_DIRECT ? 0 : 32;
    Case c = {n, 3, protocol, 3, 512, 4, 0, 0, 0, 0, modulus};
    Comm comm(n, 3, modulus, 0);
    OK(mscclsh_reserve(comm.comm, n * 1000 * 4, err, sizeof err));
    Loaded l(&comm, all_pairs(n), c), other(&comm, chain(n, 2), c);
    // Short; several tiles; not aligned; several tiles, more of them.
    Bound b4(l, 4, 1, 0), b300(l, 300, 1, 0), b1(l, 1, 1, 1), b1000(l, 1000, 1, 2);
    Bound line(other, 300, 1, 1);
    const bool flagged = protocol == MSCCLSH_LL || protocol == MSCCLSH_LL128;
    EXPECT(b4.info.threads == (flagged ? 2 : 4), "%d threads", b4.info.threads);
    EXPECT(b300.info.threads == 4 && b1.info.threads == 4, "%d threads", b300.info.threads);
    EXPECT(protocol == MSCCLSH_DIRECT || b300.info.tiles == 3, "%lld tiles",
           (long long)b300.info.tiles);
    mscclsh_size prepared = b300.size;
    prepared.chunk_bytes = 8 * 4;
    OK(mscclsh_prepare(l.prog, &prepared, nullptr, err, sizeof err));
    for (int32_t r = 0; r < n; r++) OK(mscclsh_fill(l.prog, r, 0, 0, err, sizeof err));
    Bound *all[] = {&b4, &b300, &b1, &b1000, &line};
    for (int k = 0; k < 24; k++) {
      for (Bound *b : all) b->fill(k);
      for (int i = 0; i < 12; i++) {
        Bound *b = all[(k * 7 + i * (k % 4 + 1)) % 5];
        b->launch();
        if (i % 5 == k % 5) OK(mscclsh_enqueue(l.prog, 1, err, sizeof err));
      }
      for (Bound *b : all) b->launch();
      OK(mscclsh_sync(comm.comm, err, sizeof err));
      for (Bound *b : all) b->check(k, b == &line ? 2 : -1, "turns");
    }
  }
}

// Launches come from several streams; copies between them stay where they were enqueued.
void test_streams() {
  const int32_t n = 2;
  Case c = {n, n, 1, 3, 512, 0, 0, 0, 0, 0, 0};
  Comm comm(n, n, 0, 0);
  OK(mscclsh_reserve(comm.comm, n * 64 * 4, err, sizeof err));
  Loaded l(&comm, all_pairs(n), c);
  Bound b(l, 64, 1, 0), other(l, 16, 1, 1);
  mscclsh::HostStream streams[3][n];
  // stream i, a device's own queue among them
  auto stream = [&](int i, int32_t device) {
    return i % 4 == 3 ? nullptr : static_cast<void *>(&streams[i % 4][device]);
  };
  auto launch = [&](Bound &what, int i) {
    for (int32_t d = 0; d < n; d++)
      OK(mscclsh_call_on(what.calls[size_t(d)], stream(i, d), err, sizeof err));
  };
  const int64_t bytes = 4 * n * 64;
  std::vector<float> kept(n * 64);
  for (int k = 0; k < 60; k++) {
    b.fill(k);
    other.fill(k);
    Bound fresh(l, 64, 1, 2);  // whose inputs come from those of b
    for (int i = 0; i < 4; i++) {
      launch(i % 2 ? other : b, k + i);
      for (int32_t d = 0; i == 2 && d < n; d++)
        OK(mscclsh_copy_on(comm.comm, d, stream(k + i + 1, d), fresh.memory[size_t(2 * d)].at(),
                           b.memory[size_t(2 * d)].at(), bytes, err, sizeof err));
    }
    launch(fresh, k);
    OK(mscclsh_copy_on(comm.comm, 1, stream(k + 1, 1), kept.data(), fresh.result(1), bytes, err,
                       sizeof err));
    OK(mscclsh_sync(comm.comm, err, sizeof err));
    b.check(k, -1, "streams");
    other.check(k, -1, "streams");
    int64_t wrong = 0;
    for (int64_t i = 0; i < n * 64; i++)
      wrong += double(kept[size_t(i)]) != reduced(n, i, k, 0, false);
    EXPECT(wrong == 0, "round %d: %lld elements that were copied are wrong", k, (long long)wrong);
  }
}

// Calls are unbound while their launches are under way, and their memory serves others.
void test_unbinding() {
  const int32_t n = 2;
  Case c = {n, 2, 2, 3, 512, 0, 0, 0, 0, 0, 0};
  Comm comm(n, 2, 0, 0);
  OK(mscclsh_reserve(comm.comm, n * 90 * 4, err, sizeof err));
  Loaded l(&comm, all_pairs(n), c);
  for (int k = 0; k < 60; k++) {
    std::vector<std::unique_ptr<Bound>> all;
    for (int i = 0; i < 20; i++) {
      all.emplace_back(new Bound(l, 1 + (k + 11 * i) % 90, 1, i % 3));
      all.back()->fill(k + i);
      all.back()->launch();
      all.back()->unbind();
    }
    OK(mscclsh_sync(comm.comm, err, sizeof err));
    for (int i = 0; i < 20; i++) all[size_t(i)]->check(k + i, -1, "unbound");
  }
}

}  // namespace

void test_bound() {
  test_values();
  test_turns();
  test_streams();
  test_unbinding();
  test_bound_edges();
  test_bound_moves();
}
