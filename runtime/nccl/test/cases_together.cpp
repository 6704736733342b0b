// All ranks of one process in groups of one thread: calls of all of them in one group are
// served together by protocol Direct, without windows, and all others as anywhere else.
#include "world.h"

namespace {

constexpr size_t kCount = 300;

// both_places is entries of protocol Direct for two ranks, with programs out of place and in place,
// and none for other collectives.
Bundle both_places() {
  Bundle b;
  b.add({MSCCLSH_ALLGATHER, 2, -1, false, 1, MSCCLSH_DIRECT}, 1, 1 << 20);
  b.add({MSCCLSH_ALLREDUCE, 2, -1, false, 1, MSCCLSH_DIRECT}, 1, 1 << 20);
  return b;
}

// Two is a communicator of two ranks, made by one thread.
struct Two {
  Two() { GOOD(ncclCommInitAll(comm, 2, nullptr)); }
  ~Two() {
    for (const ncclComm_t c : comm) GOOD(ncclCommDestroy(c));
  }
  ncclComm_t comm[2];
  mscclsh::HostStream stream[2];
};

Call call_of(int32_t collective, size_t count = kCount) {
  Call c;
  c.collective = collective;
  c.count = count;
  c.type = ncclInt32;
  return c;
}

// Job is one collective of both ranks.
struct Job {
  Job(Two *on, const Call &call) : Job(on, call, call) {}
  Job(Two *on, const Call &of_0, const Call &of_1) : on(on) {
    static int seed = 0;
    seed++;
    for (int r = 0; r < 2; r++) {
      parts.emplace_back(new Part(r == 0 ? of_0 : of_1, r, 2));
      parts.back()->fill(seed);
    }
  }
  void start(int r) { GOOD(parts[size_t(r)]->start(on->comm[r], stream_of(on->stream[r]))); }
  void check(const std::string &what) {
    for (mscclsh::HostStream &s : on->stream) s.wait();
    for (const auto &p : parts) p->check(what);
  }
  Two *const on;
  std::vector<std::unique_ptr<Part>> parts;
};

// expect_nccl compares how many calls NCCL got since it was asked before.
void expect_nccl(uint64_t want, const char *what) {
  EXPECT(stub().collectives() == want, "%s: NCCL got %d calls, not %d", what,
         int(stub().collectives()), int(want));
  stub().forget();
}

// start_all starts calls of ranks in one group: pairs of job and rank.
void start_all(const std::vector<std::pair<Job *, int>> &calls) {
  GOOD(ncclGroupStart());
  for (const auto &c : calls) c.first->start(c.second);
  GOOD(ncclGroupEnd());
}

// Groups in which all ranks' calls are, in whatever order, are served together.
void together() {
  use_table(both_places());
  Two on;
  stub().forget();
  for (const int32_t collective : {MSCCLSH_ALLGATHER, MSCCLSH_ALLREDUCE}) {
    const int orders[4][4][2] = {{{0, 0}, {0, 1}, {1, 0}, {1, 1}},
                                 {{0, 0}, {1, 0}, {0, 1}, {1, 1}},
                                 {{0, 1}, {1, 1}, {0, 0}, {1, 0}},
                                 {{0, 1}, {0, 0}, {1, 0}, {1, 1}}};
    for (const auto &order : orders) {
      Job a(&on, call_of(collective)), b(&on, call_of(collective));
      Job *const jobs[2] = {&a, &b};
      std::vector<std::pair<Job *, int>> calls;
      for (const auto &c : order) calls.push_back({jobs[c[0]], c[1]});
      start_all(calls);
      a.check("together");
      b.check("together");
      expect_nccl(0, "together");
    }
  }
}

// Groups in which some rank's call is not: each rank's goes where it goes alone, which is
// NCCL here, in the rank's own order.
void not_all() {
  use_table(both_places());
  Two on;
  stub().forget();
  const Call g = call_of(MSCCLSH_ALLGATHER);
  {  // both of one rank, and the first one of the other
    Job a(&on, g), b(&on, g);
    start_all({{&a, 0}, {&a, 1}, {&b, 1}});
    start_all({{&b, 0}});
    a.check("one more of rank 1");
    b.check("alone");
    expect_nccl(4, "one more of rank 1");
  }
  {  // the first one of rank 0 is in no group: equal calls must not be taken for each other
    Job a(&on, g), b(&on, g);
    a.start(0);
    start_all({{&b, 0}, {&a, 1}, {&b, 1}});
    a.check("rank 0 goes first");
    b.check("behind it");
    expect_nccl(4, "rank 0 goes first");
  }
  {  // each rank has its own group
    Job a(&on, g);
    threads(2, [&](int r) { start_all({{&a, r}}); });
    a.check("two groups");
    expect_nccl(2, "two groups");
  }
  {  // a send that its receive comes later for
    Job a(&on, g);
    int32_t from = 7, to = 0;
    GOOD(ncclGroupStart());
    a.start(0);
    GOOD(ncclSend(&from, 1, ncclInt32, 1, on.comm[0],
                  static_cast<cudaStream_t>(stream_of(on.stream[0]))));
    a.start(1);
    GOOD(ncclGroupEnd());
    GOOD(ncclRecv(&to, 1, ncclInt32, 0, on.comm[1],
                  static_cast<cudaStream_t>(stream_of(on.stream[1]))));
    a.check("with a send");
    EXPECT(to == 7, "got %d", int(to));
    expect_nccl(4, "with a send");
  }
  {  // and again together
    Job a(&on, g);
    start_all({{&a, 0}, {&a, 1}});
    a.check("again together");
    expect_nccl(0, "again together");
  }
}

// Calls that have no program are NCCL's, between others that have, in their order.
void mixed() {
  use_table(both_places());
  Two on, beside;
  stub().forget();
  Job a(&on, call_of(MSCCLSH_ALLGATHER)), b(&on, call_of(MSCCLSH_BROADCAST)),
      c(&on, call_of(MSCCLSH_REDUCESCATTER)), d(&on, call_of(MSCCLSH_ALLREDUCE)),
      e(&beside, call_of(MSCCLSH_ALLREDUCE)), f(&beside, call_of(MSCCLSH_GATHER));
  std::vector<std::pair<Job *, int>> calls;
  for (const int r : {0, 1})
    for (Job *const j : {&a, &b, &e, &c, &f, &d}) calls.push_back({j, r});
  start_all(calls);
  for (Job *const j : {&a, &b, &c, &d, &e, &f}) j->check("mixed");
  EXPECT(stub().calls("ncclBroadcast") == 2 && stub().calls("ncclReduceScatter") == 2 &&
             stub().calls("ncclGather") == 2,
         "NCCL's calls");
  expect_nccl(6, "mixed");
}

// What differs between the ranks.
void unlike() {
  use_table(both_places());
  Two on;
  stub().forget();
  const auto run = [&](Call of_0, Call of_1, uint64_t nccl, const char *what) {
    Job a(&on, of_0, of_1);
    start_all({{&a, 0}, {&a, 1}});
    a.check(what);
    expect_nccl(nccl, what);
  };
  Call plain = call_of(MSCCLSH_ALLGATHER), in_place = plain, odd = plain;
  in_place.in_place = true;
  odd.misaligned = 1;
  run(plain, plain, 0, "alike");
  run(plain, in_place, 2, "in place on one rank");
  run(in_place, in_place, 0, "in place on both");
  run(plain, odd, 0, "not aligned on one rank");
  run(plain, plain, 0, "alike again");
}

// A call that fails on one rank ends it: nobody knows what the others count.
void fails() {
  use_table(both_places());
  Two on;
  stub().forget();
  const Call g = call_of(MSCCLSH_ALLGATHER);
  {
    Job a(&on, g);
    GOOD(ncclGroupStart());
    a.start(0);
    const ncclResult_t held =
        ncclAllReduce(nullptr, nullptr, 1, ncclDataType_t(99), ncclSum, on.comm[1],
                      static_cast<cudaStream_t>(stream_of(on.stream[1])));
    EXPECT(held == ncclSuccess, "it is told at the group's end, got %d", int(held));
    EXPECT(ncclGroupEnd() == ncclInvalidArgument, "what NCCL says of it");
    stub().forget();
  }
  Job b(&on, g);
  start_all({{&b, 0}, {&b, 1}});
  b.check("after a failure");
  expect_nccl(2, "after a failure");
}

// Memory that is freed, and what is allocated at its address.
void anew() {
  use_table(both_places());
  Two on;
  stub().forget();
  for (int again = 0; again < 5; again++) {
    Job a(&on, call_of(MSCCLSH_ALLGATHER, kCount + size_t(again % 2)));
    start_all({{&a, 0}, {&a, 1}});
    a.check("anew");
    expect_nccl(0, "anew");
  }
}

// A group that is not carried out.
void simulated() {
  use_table(both_places());
  Two on;
  stub().forget();
  Job a(&on, call_of(MSCCLSH_ALLGATHER));
  ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  GOOD(ncclGroupStart());
  a.start(0);
  a.start(1);
  GOOD(ncclGroupSimulateEnd(&info));
  expect_nccl(2, "NCCL is asked");
}

// The log tells it apart from windows.
void logged() {
  use_table(both_places());
  Two on;
  stub().forget();
  Job a(&on, call_of(MSCCLSH_ALLGATHER));
  const std::string text = told([&] {
    start_all({{&a, 0}, {&a, 1}});
    a.check("with a log");
  });
  EXPECT(count_of(text, ", all ranks in one group: ") == 2 && count_of(text, "windows") == 0,
         "the log says: %s", text.c_str());
}

// An operation of the application's is of no more use once it was destroyed, which may be before
// the group ends.
void own_operation() {
  use_table(both_places());
  Two on;
  stub().forget();
  Job before(&on, call_of(MSCCLSH_ALLREDUCE)), behind(&on, call_of(MSCCLSH_ALLREDUCE));
  float data[2][2] = {{1, 2}, {3, 4}};
  GOOD(ncclGroupStart());
  for (int r = 0; r < 2; r++) {
    before.start(r);
    ncclRedOp_t op;
    float twice = 2;
    GOOD(ncclRedOpCreatePreMulSum(&op, &twice, ncclFloat32, ncclScalarHostImmediate, on.comm[r]));
    GOOD(ncclAllReduce(data[r], data[r], 2, ncclFloat32, op, on.comm[r],
                       static_cast<cudaStream_t>(stream_of(on.stream[r]))));
    GOOD(ncclRedOpDestroy(op, on.comm[r]));
    behind.start(r);
  }
  GOOD(ncclGroupEnd());
  before.check("before an operation of its own");
  behind.check("behind an operation of its own");
  for (const float *d : data) EXPECT(d[0] == 8 && d[1] == 12, "%g %g", double(d[0]), double(d[1]));
}

// Where it doesn't pay each rank's call goes where it goes alone.
void small() {
  use_table(both_places());
  Two on;
  stub().forget();
  Job a(&on, call_of(MSCCLSH_ALLREDUCE));
  start_all({{&a, 0}, {&a, 1}});
  a.check("small");
  expect_nccl(2, "small");
}

}  // namespace

std::vector<Case> cases_of_together() {
  const std::vector<std::pair<std::string, std::string>> at_any_size = {
      {"MSCCLSH_GROUP_DIRECT", "0"}};
  return {
      {"all in one group", at_any_size, together},
      {"not all in one group", at_any_size, not_all},
      {"one group, mixed", at_any_size, mixed},
      {"one group, unlike", at_any_size, unlike},
      {"one group, a call fails", at_any_size, fails},
      {"one group, memory anew", at_any_size, anew},
      {"one group, an operation of its own", at_any_size, own_operation},
      {"one group, small", {}, small},
      {"one group, simulated", at_any_size, simulated},
      {"one group, logged", {{"MSCCLSH_LOG", "choice"}, {"MSCCLSH_GROUP_DIRECT", "0"}}, logged}};
}
