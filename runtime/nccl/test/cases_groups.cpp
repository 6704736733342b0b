// Groups: nested, mixed, failing, and sends and receives.
#include "world.h"

namespace {

// Single is one thread with two ranks, both in each group.
struct Single {
  Single() {
    GOOD(ncclCommInitAll(comm, 2, nullptr));
    stub().forget();
  }
  ~Single() {
    for (const ncclComm_t c : comm) GOOD(ncclCommDestroy(c));
  }
  cudaStream_t at(int r) { return static_cast<cudaStream_t>(stream_of(stream[r])); }
  void wait() {
    for (mscclsh::HostStream &s : stream) s.wait();
  }
  ncclComm_t comm[2];
  mscclsh::HostStream stream[2];
};

// Groups in groups end with the outermost.
void nested() {
  use_table(standard({2}));
  Single s;
  std::vector<int32_t> x[2] = {{1, 2}, {10, 20}}, y[2] = {{0, 0}, {0, 0}};
  GOOD(ncclGroupStart());
  for (int r = 0; r < 2; r++) {
    GOOD(ncclGroupStart());
    GOOD(ncclAllReduce(x[r].data(), y[r].data(), 2, ncclInt32, ncclSum, s.comm[r], s.at(r)));
    GOOD(ncclGroupEnd());
  }
  EXPECT(y[0][0] == 0, "nothing runs before the end");
  GOOD(ncclGroupEnd());
  s.wait();
  for (const auto &v : y) EXPECT(v[0] == 11 && v[1] == 22, "%d %d", v[0], v[1]);
  EXPECT(stub().collectives() == 0, "NCCL got calls");
  EXPECT(ncclGroupEnd() != ncclSuccess, "an end of nothing");
}

// Programs and NCCL's calls in one group, several of each.
void mixed() {
  Bundle b;
  b.add({MSCCLSH_ALLREDUCE, 2}, 1, 1 << 20);
  use_table(b);
  Single s;
  std::vector<int32_t> x[2] = {{1, 2}, {10, 20}}, sum[2] = {{0, 0}, {0, 0}};
  std::vector<int32_t> most[2] = {{0, 0}, {0, 0}}, all[2] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
  GOOD(ncclGroupStart());
  for (int r = 0; r < 2; r++) {
    GOOD(ncclAllGather(x[r].data(), all[r].data(), 2, ncclInt32, s.comm[r], s.at(r)));
    GOOD(ncclAllReduce(x[r].data(), sum[r].data(), 2, ncclInt32, ncclSum, s.comm[r], s.at(r)));
    GOOD(ncclAllReduce(x[r].data(), most[r].data(), 2, ncclInt32, ncclMax, s.comm[r], s.at(r)));
  }
  GOOD(ncclGroupEnd());
  s.wait();
  for (int r = 0; r < 2; r++) {
    EXPECT((all[r] == std::vector<int32_t>{1, 2, 10, 20}), "allgather");
    EXPECT((sum[r] == std::vector<int32_t>{11, 22}), "allreduce, sum");
    EXPECT((most[r] == std::vector<int32_t>{10, 20}), "allreduce, maximum");
  }
  EXPECT(stub().calls("ncclAllGather") == 2 && stub().calls("ncclAllReduce") == 0, "who got what");
}

// NCCL's group fails: programs of the group are not run either.
void fails() {
  Bundle b;
  b.add({MSCCLSH_ALLREDUCE, 2}, 1, 1 << 20);
  use_table(b);
  Single s;
  std::vector<int32_t> x[2] = {{1}, {10}}, y[2] = {{0}, {0}}, all[2] = {{0, 0}, {0, 0}};
  GOOD(ncclGroupStart());
  for (int r = 0; r < 2; r++) {
    GOOD(ncclAllGather(x[r].data(), all[r].data(), 1, ncclInt32, s.comm[r], s.at(r)));
    GOOD(ncclAllReduce(x[r].data(), y[r].data(), 1, ncclInt32, ncclSum, s.comm[r], s.at(r)));
  }
  stub().fail("ncclGroupEnd", 1, ncclInternalError);
  EXPECT(ncclGroupEnd() == ncclInternalError, "NCCL's error comes through");
  s.wait();
  EXPECT(y[0][0] == 0 && y[1][0] == 0 && all[0][1] == 0, "nothing was run");
  // The next group knows nothing of it.
  GOOD(ncclGroupStart());
  for (int r = 0; r < 2; r++)
    GOOD(ncclAllReduce(x[r].data(), y[r].data(), 1, ncclInt32, ncclSum, s.comm[r], s.at(r)));
  GOOD(ncclGroupEnd());
  s.wait();
  EXPECT(y[0][0] == 11 && y[1][0] == 11, "%d %d", y[0][0], y[1][0]);
}

// A call that NCCL refuses inside a group.
void refused() {
  Bundle b;
  b.add({MSCCLSH_ALLREDUCE, 2}, 1, 1 << 20);
  use_table(b);
  Single s;
  std::vector<int32_t> x = {1};
  GOOD(ncclGroupStart());
  EXPECT(
      ncclBroadcast(x.data(), x.data(), 1, ncclInt32, 7, s.comm[0], s.at(0)) == ncclInvalidArgument,
      "no such root");
  ncclGroupEnd();
  std::vector<int32_t> y[2] = {{1}, {10}};
  GOOD(ncclGroupStart());
  for (int r = 0; r < 2; r++)
    GOOD(ncclAllReduce(y[r].data(), y[r].data(), 1, ncclInt32, ncclSum, s.comm[r], s.at(r)));
  GOOD(ncclGroupEnd());
  s.wait();
  EXPECT(y[0][0] == 11 && y[1][0] == 11, "%d %d", y[0][0], y[1][0]);
}

// An end that only simulates runs nothing, neither here nor there.
void simulated() {
  use_table(standard({2}));
  Single s;
  std::vector<int32_t> x[2] = {{1}, {10}};
  GOOD(ncclGroupStart());
  for (int r = 0; r < 2; r++)
    GOOD(ncclAllReduce(x[r].data(), x[r].data(), 1, ncclInt32, ncclSum, s.comm[r], s.at(r)));
  ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  GOOD(ncclGroupSimulateEnd(&info));
  s.wait();
  EXPECT(x[0][0] == 1 && x[1][0] == 10, "nothing was run");
}

// exchange has every rank send a block to every rank and receive one, in a group of its own.
void exchange(bool with_itself) {
  Comms comms(2);
  stub().forget();
  std::vector<int32_t> from[2] = {{1, 2}, {3, 4}}, to[2] = {{-1, -1}, {-1, -1}};
  threads(2, [&](int r) {
    const cudaStream_t s = static_cast<cudaStream_t>(stream_of(*comms.stream[size_t(r)]));
    GOOD(ncclGroupStart());
    for (int p = 0; p < 2; p++) {
      if (p == r && !with_itself) continue;
      GOOD(ncclSend(&from[r][size_t(p)], 1, ncclInt32, p, comms.comm[size_t(r)], s));
      GOOD(ncclRecv(&to[r][size_t(p)], 1, ncclInt32, p, comms.comm[size_t(r)], s));
    }
    GOOD(ncclGroupEnd());
    comms.stream[size_t(r)]->wait();
  });
  for (int r = 0; r < 2; r++)
    for (int p = 0; p < 2; p++) {
      const int32_t want = p == r && !with_itself ? -1 : from[p][size_t(r)];
      EXPECT(to[r][size_t(p)] == want, "rank %d has %d of rank %d", r, to[r][size_t(p)], p);
    }
}

// Sends and receives are NCCL's, as one rank can't see what group the others call them in.
void sends() {
  use_table(standard({2}));
  exchange(true);
  EXPECT(stub().calls("ncclSend") == 4 && stub().calls("ncclRecv") == 4, "NCCL got them");
  exchange(false);
  EXPECT(stub().calls("ncclSend") == 2 && stub().calls("ncclRecv") == 2, "NCCL got them");
}

// Unless the operator says that all ranks call them alike.
void sends_as_alltoall() {
  use_table(standard({2}));
  exchange(true);
  EXPECT(stub().calls("ncclSend") == 0 && stub().calls("ncclRecv") == 0, "NCCL got %d sends",
         int(stub().calls("ncclSend")));
}

// Ranks of one communicator that are in groups of several sizes: each rank's own matter.
void different_groups() {
  use_table(standard({2}));
  Comms comms(2);
  std::vector<int32_t> x[2] = {{1}, {10}}, y[2] = {{2}, {20}};
  stub().forget();
  threads(2, [&](int r) {
    const cudaStream_t s = static_cast<cudaStream_t>(stream_of(*comms.stream[size_t(r)]));
    const ncclComm_t c = comms.comm[size_t(r)];
    if (r == 0) GOOD(ncclGroupStart());
    GOOD(ncclAllReduce(x[r].data(), x[r].data(), 1, ncclInt32, ncclSum, c, s));
    GOOD(ncclAllReduce(y[r].data(), y[r].data(), 1, ncclInt32, ncclSum, c, s));
    if (r == 0) GOOD(ncclGroupEnd());
    comms.stream[size_t(r)]->wait();
  });
  for (int r = 0; r < 2; r++) EXPECT(x[r][0] == 11 && y[r][0] == 22, "%d %d", x[r][0], y[r][0]);
}

}  // namespace

std::vector<Case> cases_of_groups() {
  return {{"nested groups", {}, nested},
          {"programs and NCCL in a group", {}, mixed},
          {"a group fails", {}, fails},
          {"a call is refused", {}, refused},
          {"a simulated end", {}, simulated},
          {"sends and receives", {}, sends},
          {"sends as an alltoall", {{"MSCCLSH_GROUP_ALLTOALL", "1"}}, sends_as_alltoall},
          {"different groups", {}, different_groups}};
}
