// Several threads at once: making communicators, and ending one while others call on it.
#include <unistd.h>

#include <atomic>

#include "world.h"

namespace {

Call small() {
  Call c;
  c.count = 64;
  return c;
}

// Communicators that are made at the same time, by threads of their own, don't wait for each
// other in whatever order their ranks come.
void made_at_once() {
  use_table(standard({2}));
  constexpr int kComms = 4;
  for (int round = 0; round < 5; round++) {
    std::vector<ncclUniqueId> id(kComms);
    for (ncclUniqueId &i : id) GOOD(ncclGetUniqueId(&i));
    std::vector<ncclComm_t> comm(2 * kComms);
    threads(2 * kComms, [&](int i) {
      const int which = i % kComms, rank = i / kComms;
      if (rank == which % 2) usleep(useconds_t(1000 * which));
      GOOD(ncclCommInitRank(&comm[size_t(i)], 2, id[size_t(which)], rank));
    });
    for (int which = 0; which < kComms; which++) {
      std::vector<std::unique_ptr<Part>> parts;
      for (int r = 0; r < 2; r++) parts.emplace_back(new Part(small(), r, 2));
      for (const auto &p : parts) p->fill(which);
      stub().forget();
      threads(2, [&](int r) {
        mscclsh::HostStream stream;
        GOOD(parts[size_t(r)]->start(comm[size_t(r * kComms + which)], stream_of(stream)));
        stream.wait();
      });
      for (const auto &p : parts) p->check("made at once");
      EXPECT(stub().collectives() == 0, "NCCL got calls");
    }
    // And ended in another order on each rank.
    threads(2, [&](int r) {
      for (int k = 0; k < kComms; k++)
        GOOD(ncclCommDestroy(comm[size_t(r * kComms + (r == 0 ? k : kComms - 1 - k))]));
    });
  }
  EXPECT(stub().misuses() == 0 && stub().alive() == 0, "all is gone");
}

// Launches wait for some that their peer never makes when another thread aborts the
// communicator: everything ends, and a later communicator works.
void aborted_beside_calls() {
  use_table(standard({2}));
  for (int round = 0; round < 5; round++) {
    ncclUniqueId id;
    GOOD(ncclGetUniqueId(&id));
    std::vector<ncclComm_t> comm(2);
    threads(2, [&](int r) { GOOD(ncclCommInitRank(&comm[size_t(r)], 2, id, r)); });
    std::atomic<bool> ends{false};
    std::atomic<int> outside{0};
    threads(3, [&](int i) {
      if (i == 2) {
        usleep(useconds_t(5000 + 3000 * round));
        ends = true;
        // No call begins once its communicator is no more, as NCCL asks for; launches wait.
        while (outside < 2) usleep(100);
        for (const ncclComm_t c : comm) GOOD(ncclCommAbort(c));
        return;
      }
      std::vector<float> x(64, 1);
      mscclsh::HostStream stream;
      for (int calls = 0; !ends && (i == 0 || calls < 1 + round); calls++) {
        if (ncclAllReduce(x.data(), x.data(), 64, ncclFloat32, ncclSum, comm[size_t(i)],
                          static_cast<cudaStream_t>(stream_of(stream))) != ncclSuccess)
          break;
        if (i == 0 && calls >= 3) {
          while (!ends) usleep(100);
        }
      }
      outside++;
      stream.wait();
    });
  }
  Comms again(2);
  ran_here(again, small(), "a communicator after it");
  EXPECT(stub().misuses() == 0, "NCCL was misused");
}

}  // namespace

std::vector<Case> cases_of_races() {
  return {{"made at once", {}, made_at_once}, {"aborted beside calls", {}, aborted_beside_calls}};
}
