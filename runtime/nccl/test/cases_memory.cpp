// Memory that the application registers: Direct runs in windows and nowhere else.
#include "world.h"

namespace {

constexpr size_t kCount = 256;  // of an allgather, int32

// Table with one Direct program, an allgather of two ranks.
Bundle direct_only() {
  Bundle b;
  b.add({MSCCLSH_ALLGATHER, 2, -1, false, 1, MSCCLSH_DIRECT}, 1, 1 << 20);
  return b;
}

Call gather() {
  Call c;
  c.collective = MSCCLSH_ALLGATHER;
  c.count = kCount;
  c.type = ncclInt32;
  return c;
}

// Halves is memory of each rank for both buffers of an allgather: its input first.
struct Halves {
  explicit Halves(int ranks) : at(size_t(ranks)) {
    for (void *&p : at) GOOD(ncclMemAlloc(&p, kBytes));
  }
  ~Halves() {
    for (void *p : at) GOOD(ncclMemFree(p));
  }
  static constexpr size_t kBytes = 16 * kCount * sizeof(int32_t);
  void *send(int r) const { return at[size_t(r)]; }
  void *recv(int r) const { return static_cast<char *>(at[size_t(r)]) + kBytes / 2; }
  std::vector<void *> at;
};

std::vector<ncclWindow_t> register_all(Comms &comms, const Halves &h) {
  std::vector<ncclWindow_t> windows(2);
  threads(2, [&](int r) {
    GOOD(ncclCommWindowRegister(comms.comm[size_t(r)], h.at[size_t(r)], Halves::kBytes,
                                &windows[size_t(r)], NCCL_WIN_COLL_SYMMETRIC));
    EXPECT(windows[size_t(r)] != nullptr, "a window");
  });
  return windows;
}

void deregister_all(Comms &comms, const std::vector<ncclWindow_t> &windows) {
  threads(
      2, [&](int r) { GOOD(ncclCommWindowDeregister(comms.comm[size_t(r)], windows[size_t(r)])); });
}

// gather_in runs an allgather in such memory, shifted by so many bytes, and tells how many
// calls NCCL got.
uint64_t gather_in(Comms &comms, const Halves &h, const std::string &what, size_t shift = 0,
                   size_t shift_of_1 = 0) {
  static int seed = 0;
  seed++;
  stub().forget();
  std::vector<std::unique_ptr<Part>> parts;
  for (int r = 0; r < 2; r++) {
    const size_t by = shift + (r == 1 ? shift_of_1 : 0);
    parts.emplace_back(new Part(gather(), r, 2, static_cast<char *>(h.send(r)) + by,
                                static_cast<char *>(h.recv(r)) + by));
    parts.back()->fill(seed);
  }
  threads(2, [&](int r) {
    GOOD(parts[size_t(r)]->start(comms.comm[size_t(r)], stream_of(*comms.stream[size_t(r)])));
    comms.stream[size_t(r)]->wait();
  });
  for (const auto &p : parts) p->check(what);
  return stub().calls("ncclAllGather");
}

void windows() {
  use_table(direct_only());
  Comms comms(2);
  left_to_nccl(comms, gather(), "memory in no window");
  const Halves h(2);
  EXPECT(gather_in(comms, h, "not registered") == 2, "NCCL's");
  std::vector<ncclWindow_t> w = register_all(comms, h);
  EXPECT(gather_in(comms, h, "registered") == 0, "a program took it");
  EXPECT(gather_in(comms, h, "registered, further on", 64) == 0, "a program took it");
  left_to_nccl(comms, gather(), "other memory, beside a window");
  deregister_all(comms, w);
  EXPECT(gather_in(comms, h, "no longer registered") == 2, "NCCL's");
  w = register_all(comms, h);
  EXPECT(gather_in(comms, h, "registered again") == 0, "a program took it");
  deregister_all(comms, w);
}

// Memory is freed while a window is gone, and comes again at the same address.
void same_address() {
  use_table(direct_only());
  Comms comms(2);
  std::vector<void *> before;
  for (int again = 0; again < 3; again++) {
    const Halves h(2);
    if (again == 0) before = h.at;
    // The stub hands out what was freed last first.
    EXPECT(h.at[0] == before[0] || h.at[0] == before[1], "the same address");
    EXPECT(gather_in(comms, h, "a new allocation") == 2, "NCCL's");
    const std::vector<ncclWindow_t> w = register_all(comms, h);
    EXPECT(gather_in(comms, h, "registered") == 0, "a program took it");
    deregister_all(comms, w);
  }
}

// Two windows overlap on one rank and not on the other: which of them a buffer is in must
// not be for each rank to find by where they lie.
void overlapping() {
  use_table(direct_only());
  Comms comms(2);
  const Halves h(2), other(2);
  const std::vector<ncclWindow_t> w = register_all(comms, h);
  std::vector<ncclWindow_t> second(2);
  threads(2, [&](int r) {
    void *const at = r == 0 ? static_cast<char *>(h.at[0]) + 4096 : other.at[1];
    GOOD(ncclCommWindowRegister(comms.comm[size_t(r)], at, Halves::kBytes - 4096,
                                &second[size_t(r)], NCCL_WIN_COLL_SYMMETRIC));
  });
  EXPECT(gather_in(comms, h, "windows that overlap") == 0, "the first window is used");
  deregister_all(comms, second);
  EXPECT(gather_in(comms, h, "without the second") == 0, "the first window is used");
  deregister_all(comms, w);
  // Once the first is gone, another one like the second is as good as any.
  const std::vector<ncclWindow_t> third = register_all(comms, other);
  EXPECT(gather_in(comms, other, "after the first") == 0, "a program took it");
  deregister_all(comms, third);
}

// The same memory is registered twice, and a part of it as well: each registration counts
// until it is ended itself, in whatever order they are.
void registered_twice() {
  use_table(direct_only());
  Comms comms(2);
  const Halves h(2);
  const auto part_of = [&] {
    std::vector<ncclWindow_t> part(2);
    threads(2, [&](int r) {
      GOOD(ncclCommWindowRegister(comms.comm[size_t(r)], h.at[size_t(r)], Halves::kBytes / 2 + 4096,
                                  &part[size_t(r)], NCCL_WIN_COLL_SYMMETRIC));
    });
    return part;
  };
  // The part is 12,288 bytes long: an output of 2,048 at 8,192 is in it, but not one that
  // begins 3,072 later.
  static const int kOrders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                    {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (const auto &order : kOrders) {
    std::vector<std::vector<ncclWindow_t>> w = {register_all(comms, h), register_all(comms, h),
                                                part_of()};
    bool whole = true, part = true;
    for (const int i : order) {
      EXPECT((gather_in(comms, h, "in several windows") == 0) == (whole || part), "before %d", i);
      EXPECT((gather_in(comms, h, "beyond the part", 3072) == 0) == whole, "before %d", i);
      deregister_all(comms, w[size_t(i)]);
      w[size_t(i)].clear();
      whole = !w[0].empty() || !w[1].empty();
      part = !w[2].empty();
    }
    EXPECT(gather_in(comms, h, "in no window any more") == 2, "NCCL's");
  }
}

// Several registrations of the same memory in one group.
void registered_in_group() {
  use_table(direct_only());
  Comms comms(2);
  const Halves h(2);
  std::vector<std::vector<ncclWindow_t>> w(2, std::vector<ncclWindow_t>(2));
  threads(2, [&](int r) {
    GOOD(ncclGroupStart());
    for (std::vector<ncclWindow_t> &one : w)
      GOOD(ncclCommWindowRegister(comms.comm[size_t(r)], h.at[size_t(r)], Halves::kBytes,
                                  &one[size_t(r)], NCCL_WIN_COLL_SYMMETRIC));
    GOOD(ncclGroupEnd());
  });
  EXPECT(gather_in(comms, h, "registered twice") == 0, "a program took it");
  deregister_all(comms, w[0]);
  EXPECT(gather_in(comms, h, "the second is left") == 0, "a program took it");
  deregister_all(comms, w[1]);
  EXPECT(gather_in(comms, h, "none is left") == 2, "NCCL's");
}

// Memory is freed though it is registered, and what comes at its address is registered.
void freed_in_window() {
  use_table(direct_only());
  Comms comms(2);
  std::vector<std::vector<ncclWindow_t>> all;
  for (int again = 0; again < 3; again++) {
    const Halves h(2);
    EXPECT(gather_in(comms, h, "a new allocation") == 2, "NCCL's");
    all.push_back(register_all(comms, h));
    EXPECT(gather_in(comms, h, "registered") == 0, "a program took it");
  }
  for (const std::vector<ncclWindow_t> &w : all) deregister_all(comms, w);
}

// A window of one communicator is none of another's.
void another_communicator() {
  use_table(direct_only());
  Comms one(2), other(2);
  const Halves h(2);
  const std::vector<ncclWindow_t> w = register_all(one, h);
  EXPECT(gather_in(one, h, "of this communicator") == 0, "a program took it");
  EXPECT(gather_in(other, h, "of the other one") == 2, "NCCL's");
  deregister_all(one, w);
}

// Buffers that reach beyond the window.
void beyond() {
  use_table(direct_only());
  Comms comms(2);
  const Halves h(2);
  std::vector<ncclWindow_t> windows(2);
  threads(2, [&](int r) {  // but for the last bytes of the output
    GOOD(ncclCommWindowRegister(comms.comm[size_t(r)], h.at[size_t(r)],
                                Halves::kBytes / 2 + 2 * kCount * sizeof(int32_t) - 4,
                                &windows[size_t(r)], NCCL_WIN_COLL_SYMMETRIC));
  });
  EXPECT(gather_in(comms, h, "beyond the window") == 2, "NCCL's");
  deregister_all(comms, windows);
}

// All ranks of one process in one group: buffers are known without windows, also when memory
// was freed and allocated again.
void one_group() {
  use_table(direct_only());
  ncclComm_t comm[2];
  GOOD(ncclCommInitAll(comm, 2, nullptr));
  mscclsh::HostStream streams[2];
  for (int again = 0; again < 4; again++) {
    stub().forget();
    const Halves h(2);
    std::vector<std::unique_ptr<Part>> parts;
    GOOD(ncclGroupStart());
    for (int r = 0; r < 2; r++) {
      parts.emplace_back(new Part(gather(), r, 2, h.send(r), h.recv(r)));
      parts.back()->fill(again);
      GOOD(parts.back()->start(comm[r], stream_of(streams[r])));
    }
    GOOD(ncclGroupEnd());
    for (mscclsh::HostStream &s : streams) s.wait();
    for (const auto &p : parts) p->check("one group");
    EXPECT(stub().calls("ncclAllGather") == 0, "a program took it");
  }
  for (const ncclComm_t c : comm) GOOD(ncclCommDestroy(c));
}

// ncclCommRegister is a hint to NCCL: one rank may give it and another not, so that it can
// have no part in what is chosen.
void registered_by_one() {
  use_table(direct_only());
  Comms comms(2);
  const Halves h(2);
  void *handle = nullptr;
  GOOD(ncclCommRegister(comms.comm[0], h.at[0], Halves::kBytes, &handle));
  EXPECT(stub().calls("ncclCommRegister") == 1, "NCCL is told");
  EXPECT(gather_in(comms, h, "registered by one rank") == 2, "NCCL's");
  GOOD(ncclCommDeregister(comms.comm[0], handle));
}

}  // namespace

std::vector<Case> cases_of_memory() {
  return {{"windows", {}, windows},
          {"freed and allocated again", {}, same_address},
          {"windows that overlap", {}, overlapping},
          {"windows of the same memory", {}, registered_twice},
          {"the same windows in a group", {}, registered_in_group},
          {"freed in a window", {}, freed_in_window},
          {"another's window", {}, another_communicator},
          {"beyond the window", {}, beyond},
          {"one process, one group", {{"MSCCLSH_GROUP_DIRECT", "0"}}, one_group},
          {"registered by one rank", {}, registered_by_one}};
}
