// Communicators: how they are made, live beside each other and end.
#include <unistd.h>

#include <chrono>
#include <thread>

#include "world.h"

namespace {

Call small(size_t count = 64) {
  Call c;
  c.count = count;
  return c;
}

// each_on runs an allreduce of some ranks' communicators, one a thread, and tells how many
// calls NCCL got.
uint64_t each_on(const std::vector<ncclComm_t> &comm, int ranks, const std::vector<int> &rank,
                 const std::string &what) {
  stub().forget();
  std::vector<std::unique_ptr<Part>> parts;
  for (const int r : rank) parts.emplace_back(new Part(small(), r, ranks));
  for (const auto &p : parts) p->fill(3);
  threads(int(comm.size()), [&](int i) {
    mscclsh::HostStream stream;
    GOOD(parts[size_t(i)]->start(comm[size_t(i)], stream_of(stream)));
    stream.wait();
  });
  for (const auto &p : parts) p->check(what);
  return stub().calls("ncclAllReduce");
}

void destroy(const std::vector<ncclComm_t> &comm) {
  threads(int(comm.size()), [&](int i) { GOOD(ncclCommDestroy(comm[size_t(i)])); });
}

// Two communicators on the same devices, from threads of their own, at once.
void concurrent() {
  use_table(standard({2}));
  Comms one(2), other(2);
  std::vector<Comms *> both = {&one, &other};
  stub().forget();
  threads(4, [&](int i) {
    Comms &c = *both[size_t(i / 2)];
    const size_t r = size_t(i % 2);
    std::vector<int32_t> x(100, int32_t(r + 1));
    const cudaStream_t s = static_cast<cudaStream_t>(stream_of(*c.stream[r]));
    for (int again = 0; again < 50; again++) {
      GOOD(ncclAllReduce(x.data(), x.data(), 100, ncclInt32, ncclMax, c.comm[r], s));
      GOOD(ncclAllReduce(x.data(), x.data(), 100, ncclInt32, ncclSum, c.comm[r], s));
      c.stream[r]->wait();
      GOOD(ncclAllReduce(x.data(), x.data(), 100, ncclInt32, ncclAvg, c.comm[r], s));
      c.stream[r]->wait();
      for (const int32_t v : x) EXPECT(v == 4, "%d", v);
      for (int32_t &v : x) v = int32_t(r + 1);
    }
  });
  EXPECT(stub().collectives() == 0, "NCCL got calls");
}

void split() {
  use_table(standard({2, 4}));
  Comms whole(4);
  std::vector<ncclComm_t> half(4);
  // Even and odd ranks, in the opposite order.
  threads(4, [&](int r) {
    GOOD(ncclCommSplit(whole.comm[size_t(r)], r % 2, -r, &half[size_t(r)], nullptr));
  });
  for (int r = 0; r < 4; r++) {
    int ranks = 0, rank = -1;
    GOOD(ncclCommCount(half[size_t(r)], &ranks));
    GOOD(ncclCommUserRank(half[size_t(r)], &rank));
    EXPECT(ranks == 2 && rank == (r < 2 ? 1 : 0), "rank %d is %d of %d", r, rank, ranks);
  }
  EXPECT(each_on({half[2], half[0]}, 2, {0, 1}, "even") == 0, "a program took it");
  EXPECT(each_on({half[3], half[1]}, 2, {0, 1}, "odd") == 0, "a program took it");
  ran_here(whole, small(), "the parent beside its children");
  destroy(half);
  // One rank stays out.
  threads(4, [&](int r) {
    GOOD(ncclCommSplit(whole.comm[size_t(r)], r == 3 ? NCCL_SPLIT_NOCOLOR : 7, r, &half[size_t(r)],
                       nullptr));
  });
  EXPECT(half[3] == nullptr, "the rank that stays out has no communicator");
  EXPECT(each_on({half[0], half[1], half[2]}, 3, {0, 1, 2}, "three") == 3, "no entry for three");
  destroy({half[0], half[1], half[2]});
}

void shrink() {
  use_table(standard({2, 3, 4}));
  Comms whole(4);
  std::vector<ncclComm_t> less(3);
  const int keep[3] = {0, 2, 3};
  threads(3, [&](int i) {
    int out = 1;
    GOOD(ncclCommShrink(whole.comm[size_t(keep[i])], &out, 1, &less[size_t(i)], nullptr,
                        NCCL_SHRINK_DEFAULT));
  });
  EXPECT(each_on(less, 3, {0, 1, 2}, "one rank less") == 0, "a program took it");
  destroy(less);
}

// One thread with all ranks: InitAll, and calls in groups.
void init_all() {
  use_table(standard({4}));
  std::vector<ncclComm_t> comm(4);
  GOOD(ncclCommInitAll(comm.data(), 4, nullptr));
  for (int r = 0; r < 4; r++) {
    int device = -1;
    GOOD(ncclCommCuDevice(comm[size_t(r)], &device));
    EXPECT(device == r, "rank %d is on device %d", r, device);
  }
  for (int32_t c = 0; c < MSCCLSH_SENDRECV; c++) {
    stub().forget();
    Call call = small();
    call.collective = c;
    std::vector<std::unique_ptr<Part>> parts;
    std::vector<std::unique_ptr<mscclsh::HostStream>> streams;
    GOOD(ncclGroupStart());
    for (int r = 0; r < 4; r++) {
      parts.emplace_back(new Part(call, r, 4));
      streams.emplace_back(new mscclsh::HostStream);
      parts.back()->fill(c);
      GOOD(parts.back()->start(comm[size_t(r)], stream_of(*streams.back())));
    }
    GOOD(ncclGroupEnd());
    for (const auto &s : streams) s->wait();
    for (const auto &p : parts) p->check("one thread with all ranks");
    EXPECT(stub().collectives() == 0, "%s: NCCL got calls", function_of(c));
  }
  for (ncclComm_t c : comm) GOOD(ncclCommDestroy(c));
}

// Several communicators made in one group, some by one thread for all its ranks.
void init_group() {
  use_table(standard({2}));
  ncclUniqueId id[2];
  for (ncclUniqueId &i : id) GOOD(ncclGetUniqueId(&i));
  std::vector<ncclComm_t> comm(4);
  GOOD(ncclGroupStart());
  for (int i = 0; i < 4; i++) GOOD(ncclCommInitRank(&comm[size_t(i)], 2, id[i / 2], i % 2));
  GOOD(ncclGroupEnd());
  EXPECT(each_on({comm[0], comm[1]}, 2, {0, 1}, "the first") == 0, "a program took it");
  EXPECT(each_on({comm[2], comm[3]}, 2, {0, 1}, "the second") == 0, "a program took it");
  destroy(comm);
}

void scalable() {
  use_table(standard({2}));
  ncclUniqueId id[2];
  for (ncclUniqueId &i : id) GOOD(ncclGetUniqueId(&i));
  std::vector<ncclComm_t> comm(2);
  threads(2,
          [&](int r) { GOOD(ncclCommInitRankScalable(&comm[size_t(r)], 2, r, 2, id, nullptr)); });
  EXPECT(each_on(comm, 2, {0, 1}, "scalable") == 0, "a program took it");
  destroy(comm);
}

// wait_until_ready polls as applications do, and tells how often.
int wait_until_ready(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  int polls = 0;
  while (state == ncclInProgress) {
    GOOD(ncclCommGetAsyncError(comm, &state));
    usleep(2000);
    polls++;
  }
  EXPECT(state == ncclSuccess, "state %d", int(state));
  return polls;
}

// huge is a table whose entries are for any size.
Bundle huge() {
  Bundle b = standard({2});
  for (HandEntry &e : b.entries) e.entry.max_bytes = uint64_t(1) << 62;
  return b;
}

// configured makes a communicator of two ranks with one configuration.
std::vector<ncclComm_t> configured(const ncclConfig_t &config, ncclResult_t want) {
  ncclUniqueId id;
  GOOD(ncclGetUniqueId(&id));
  std::vector<ncclComm_t> comm(2);
  threads(2, [&](int r) {
    ncclConfig_t mine = config;
    const ncclResult_t result = ncclCommInitRankConfig(&comm[size_t(r)], 2, id, r, &mine);
    EXPECT(result == want, "result %d", int(result));
  });
  return comm;
}

// blocking=0: made in the background, of use when the asynchronous error says so.
void nonblocking() {
  use_table(standard({2}));
  stub().slow(300, 0);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const auto begun = std::chrono::steady_clock::now();
  const std::vector<ncclComm_t> comm = configured(config, ncclInProgress);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  EXPECT(took.count() < 0.2, "it blocked for %g s", took.count());
  float x = 1;
  EXPECT(ncclAllReduce(&x, &x, 1, ncclFloat32, ncclSum, comm[0], nullptr) == ncclInvalidArgument,
         "a call that comes too early");
  EXPECT(ncclSend(&x, 1, ncclFloat32, 1, comm[0], nullptr) == ncclInvalidArgument,
         "a message that comes too early");
  threads(2, [&](int r) {
    const int polls = wait_until_ready(comm[size_t(r)]);
    EXPECT(polls > 1, "ready after %d polls", polls);
  });
  EXPECT(each_on(comm, 2, {0, 1}, "made in the background") == 0, "a program took it");
  destroy(comm);
  EXPECT(stub().misuses() == 0, "NCCL was misused");
}

// A communicator that doesn't block is split: the child is there when its parent is ready,
// and is of use at once if it blocks, as it does where a configuration doesn't say otherwise.
void nonblocking_split() {
  use_table(standard({2}));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const std::vector<ncclComm_t> comm = configured(config, ncclInProgress);
  threads(2, [&](int r) { wait_until_ready(comm[size_t(r)]); });
  stub().slow(0, 100);
  for (const bool configured_anew : {false, true}) {
    std::vector<ncclComm_t> child(2, nullptr), less(2, nullptr);
    threads(2, [&](int r) {
      ncclConfig_t blocks = NCCL_CONFIG_INITIALIZER;
      EXPECT(ncclCommSplit(comm[size_t(r)], 1, r, &child[size_t(r)],
                           configured_anew ? &blocks : nullptr) == ncclInProgress,
             "it blocks");
      wait_until_ready(comm[size_t(r)]);
      EXPECT(child[size_t(r)] != nullptr, "there is no child");
      ncclResult_t state = ncclInternalError;
      GOOD(ncclCommGetAsyncError(child[size_t(r)], &state));
      EXPECT(state == ncclSuccess, "state %d", int(state));
    });
    if (configured_anew) stub().slow(0, 0);
    EXPECT(each_on(child, 2, {0, 1}, "split off") == 0, "a program took it");
    threads(2, [&](int r) {  // one stays out
      EXPECT(ncclCommSplit(comm[size_t(r)], r == 0 ? NCCL_SPLIT_NOCOLOR : 1, r, &less[size_t(r)],
                           nullptr) == ncclInProgress,
             "it blocks");
      wait_until_ready(comm[size_t(r)]);
      EXPECT((less[size_t(r)] == nullptr) == (r == 0), "who has a child");
    });
    destroy(child);
    GOOD(ncclCommDestroy(less[1]));
  }
  EXPECT(each_on(comm, 2, {0, 1}, "the parent") == 0, "a program took it");
  destroy(comm);
  // One that blocks has a child that doesn't, which is there nevertheless.
  Comms blocking(2);
  std::vector<ncclComm_t> child(2, nullptr);
  threads(2, [&](int r) {
    ncclConfig_t mine = config;
    GOOD(ncclCommSplit(blocking.comm[size_t(r)], 1, r, &child[size_t(r)], &mine));
  });
  EXPECT(each_on(child, 2, {0, 1}, "split off one that blocks") == 0, "a program took it");
  destroy(child);
  EXPECT(stub().misuses() == 0, "NCCL was misused");
}

// Of a group on communicators that don't block NCCL may have enqueued its part on one rank
// and not yet on another: a program comes after it on both, or each would wait for the other.
void nonblocking_group() {
  Bundle b;
  b.add({MSCCLSH_ALLREDUCE, 2}, 1, 1 << 20);
  use_table(b);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const std::vector<ncclComm_t> comm = configured(config, ncclInProgress);
  threads(2, [&](int r) { wait_until_ready(comm[size_t(r)]); });
  stub().slow(0, 100);
  stub().forget();
  std::vector<int32_t> x[2] = {{1}, {10}}, all[2] = {{0, 0}, {0, 0}}, sum[2] = {{0}, {0}};
  threads(2, [&](int r) {
    mscclsh::HostStream stream;
    const cudaStream_t s = static_cast<cudaStream_t>(stream_of(stream));
    const ncclComm_t c = comm[size_t(r)];
    GOOD(ncclGroupStart());
    ncclAllGather(x[r].data(), all[r].data(), 1, ncclInt32, c, s);
    ncclAllReduce(x[r].data(), sum[r].data(), 1, ncclInt32, ncclSum, c, s);
    EXPECT(ncclGroupEnd() == ncclInProgress, "it blocks");
    wait_until_ready(c);
    stream.wait();
    EXPECT((all[r] == std::vector<int32_t>{1, 10}) && sum[r][0] == 11, "%d", sum[r][0]);
    // And without waiting for it, when the communicator ends.
    GOOD(ncclGroupStart());
    ncclAllGather(x[r].data(), all[r].data(), 1, ncclInt32, c, s);
    ncclAllReduce(x[r].data(), x[r].data(), 1, ncclInt32, ncclSum, c, s);
    EXPECT(ncclGroupEnd() == ncclInProgress, "it blocks");
    wait_until_ready(c);
    stream.wait();
    EXPECT(x[r][0] == 11, "%d", x[r][0]);
  });
  EXPECT(stub().calls("ncclAllGather") == 4 && stub().calls("ncclAllReduce") == 0, "who got what");
  destroy(comm);
  EXPECT(stub().misuses() == 0, "NCCL was misused");
}

// A launch fails on one rank, for want of memory: what it calls next must not meet what the
// others called then.
void launch_fails() {
  use_table(huge());
  Comms comms(2);
  std::vector<int32_t> x[2] = {{1, 2}, {10, 20}};
  const cudaStream_t s = static_cast<cudaStream_t>(stream_of(*comms.stream[0]));
  // Buffers that overlap are copied first, these to memory that no machine has.
  EXPECT(ncclAllReduce(x[0].data(), x[0].data() + 1, size_t(1) << 50, ncclInt32, ncclSum,
                       comms.comm[0], s) == ncclSystemError,
         "it can't be launched");
  EXPECT(ncclAllReduce(x[0].data(), x[0].data(), 1, ncclInt32, ncclSum, comms.comm[0], s) ==
             ncclSystemError,
         "a rank that has lost step launches no more");
  ncclResult_t state = ncclSuccess;
  GOOD(ncclCommGetAsyncError(comms.comm[0], &state));
  EXPECT(state == ncclSystemError, "state %d", int(state));
  EXPECT(std::string(ncclGetLastError(comms.comm[0])).find("memory") != std::string::npos, "%s",
         ncclGetLastError(comms.comm[0]));
  GOOD(ncclGroupStart());
  ncclAllReduce(x[0].data(), x[0].data(), 1, ncclInt32, ncclSum, comms.comm[0], s);
  EXPECT(ncclGroupEnd() == ncclSystemError, "nor in a group");
  EXPECT(x[0][0] == 1, "nothing was run");
  Comms others(2);
  ran_here(others, small(), "another communicator");
}

// A communicator that may have fewer thread blocks than a program has.
void max_ctas() {
  Bundle b = standard({2});
  for (HandEntry &e : b.entries)
    if (e.entry.collective == MSCCLSH_ALLREDUCE) e.entry.max_blocks = 4;
  use_table(b);
  for (const int most : {3, 4}) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.maxCTAs = most;
    const std::vector<ncclComm_t> comm = configured(config, ncclSuccess);
    EXPECT(each_on(comm, 2, {0, 1}, "maxCTAs") == (most < 4 ? 2u : 0u), "with %d", most);
    destroy(comm);
  }
}

// Communicators one after the other at one address are not mistaken for each other.
void same_address() {
  use_table(standard({2}));
  ncclComm_t before = nullptr;
  for (int again = 0; again < 3; again++) {
    {
      Comms two(2);
      if (before == nullptr) before = two.comm[0];
      ran_here(two, small(), "two ranks");
    }
    Comms three(3);
    bool there = false;
    for (const ncclComm_t c : three.comm) there |= c == before;
    EXPECT(there, "the address was used again");
    left_to_nccl(three, small(), "three ranks");
  }
}

// Many communicators leave nothing behind.
void many() {
  use_table(standard({2}));
  for (int i = 0; i < 30; i++) {
    Comms two(2);
    ran_here(two, small(), "one of many");
  }
  EXPECT(stub().alive() == 0, "%d are left", stub().alive());
}

// NCCL can't make the communicator: its error comes through, and nothing is kept.
void init_fails() {
  use_table(standard({2}));
  ncclUniqueId id;
  GOOD(ncclGetUniqueId(&id));
  stub().fail("ncclCommInitRank", 1, ncclSystemError);
  ncclComm_t comm = nullptr;
  EXPECT(ncclCommInitRank(&comm, 2, id, 0) == ncclSystemError, "NCCL's error");
  Comms two(2);
  ran_here(two, small(), "after a failure");
}

// wait_for polls until the asynchronous error is not success, some seconds at most.
ncclResult_t wait_for_error(ncclComm_t comm) {
  ncclResult_t state = ncclSuccess;
  for (int i = 0; i < 1000 && state == ncclSuccess; i++) {
    GOOD(ncclCommGetAsyncError(comm, &state));
    usleep(10000);
  }
  return state;
}

// A rank whose peer never calls: the watchdog ends it, and the communicator says so.
void watchdog() {
  use_table(standard({2}));
  ncclUniqueId id;
  GOOD(ncclGetUniqueId(&id));
  std::vector<ncclComm_t> comm(2);
  threads(2, [&](int r) { GOOD(ncclCommInitRank(&comm[size_t(r)], 2, id, r)); });
  std::vector<float> x(64, 1);
  mscclsh::HostStream stream;
  GOOD(ncclAllReduce(x.data(), x.data(), 64, ncclFloat32, ncclSum, comm[0],
                     static_cast<cudaStream_t>(stream_of(stream))));
  const ncclResult_t state = wait_for_error(comm[0]);
  EXPECT(state == ncclInternalError || state == ncclRemoteError, "state %d", int(state));
  const std::string why = ncclGetLastError(comm[0]);
  EXPECT(why.size() > 20, "it says: %s", why.c_str());
  EXPECT(
      ncclAllReduce(x.data(), x.data(), 64, ncclFloat32, ncclSum, comm[0], nullptr) != ncclSuccess,
      "a communicator that has failed takes no more calls");
  threads(2, [&](int r) { GOOD(ncclCommAbort(comm[size_t(r)])); });
  Comms again(2);
  ran_here(again, small(), "a communicator after it");
}

// Abort ends a launch that waits for a peer.
void abort_ends() {
  use_table(standard({2}));
  ncclUniqueId id;
  GOOD(ncclGetUniqueId(&id));
  std::vector<ncclComm_t> comm(2);
  threads(2, [&](int r) { GOOD(ncclCommInitRank(&comm[size_t(r)], 2, id, r)); });
  std::vector<float> x(64, 1);
  mscclsh::HostStream stream;
  GOOD(ncclAllReduce(x.data(), x.data(), 64, ncclFloat32, ncclSum, comm[0],
                     static_cast<cudaStream_t>(stream_of(stream))));
  usleep(100000);
  const auto begun = std::chrono::steady_clock::now();
  threads(2, [&](int r) { GOOD(ncclCommAbort(comm[size_t(r)])); });
  stream.wait();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  EXPECT(took.count() < 20, "it took %g s", took.count());
}

// NCCL's own asynchronous errors come through, and its last error.
void nccl_errors() {
  use_table(standard({2}));
  Comms comms(2);
  stub().async(comms.comm[0], ncclSystemError);
  ncclResult_t state = ncclSuccess;
  GOOD(ncclCommGetAsyncError(comms.comm[0], &state));
  EXPECT(state == ncclSystemError, "state %d", int(state));
  stub().async(comms.comm[0], ncclSuccess);
  stub().fail("ncclRedOpDestroy", 1, ncclInternalError);
  EXPECT(ncclRedOpDestroy(ncclRedOp_t(9), comms.comm[0]) == ncclInternalError, "the result");
  EXPECT(std::string(ncclGetLastError(comms.comm[0])) == "ncclRedOpDestroy was told to fail",
         "it says: %s", ncclGetLastError(comms.comm[0]));
}

// Finalize, then destroy, as applications that wait do.
void finalize() {
  use_table(standard({2}));
  ncclUniqueId id;
  GOOD(ncclGetUniqueId(&id));
  std::vector<ncclComm_t> comm(2);
  threads(2, [&](int r) { GOOD(ncclCommInitRank(&comm[size_t(r)], 2, id, r)); });
  EXPECT(each_on(comm, 2, {0, 1}, "before the end") == 0, "a program took it");
  threads(2, [&](int r) {
    GOOD(ncclCommFinalize(comm[size_t(r)]));
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress) GOOD(ncclCommGetAsyncError(comm[size_t(r)], &state));
    EXPECT(state == ncclSuccess, "state %d", int(state));
    float x = 1;
    EXPECT(ncclAllReduce(&x, &x, 1, ncclFloat32, ncclSum, comm[size_t(r)], nullptr) ==
               ncclInvalidUsage,
           "what NCCL says of a call after the end");
    GOOD(ncclCommDestroy(comm[size_t(r)]));
  });
  GOOD(ncclCommDestroy(nullptr));
  EXPECT(stub().misuses() == 0 && stub().alive() == 0, "all is gone");
}

}  // namespace

std::vector<Case> cases_of_life() {
  return {{"concurrent communicators", {}, concurrent},
          {"split", {}, split},
          {"shrink", {}, shrink},
          {"InitAll", {}, init_all},
          {"InitRank in a group", {}, init_group},
          {"InitRankScalable", {}, scalable},
          {"blocking=0", {}, nonblocking},
          {"blocking=0, split", {}, nonblocking_split},
          {"blocking=0, in a group", {}, nonblocking_group},
          {"a launch fails", {{"MSCCLSH_SCRATCH", "4611686018427387903"}}, launch_fails},
          {"maxCTAs", {}, max_ctas},
          {"same address", {}, same_address},
          {"many communicators", {}, many},
          {"init fails", {}, init_fails},
          {"watchdog", {{"MSCCLSH_WATCHDOG", "1"}}, watchdog},
          {"abort", {}, abort_ends},
          {"NCCL's errors", {}, nccl_errors},
          {"finalize", {}, finalize}};
}
