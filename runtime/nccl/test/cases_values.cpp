// Values: every collective, with types, operations, roots, places and sizes, by programs
// and by NCCL.
#include "world.h"

namespace {

using Runner = void (*)(Comms &, const Call &, const std::string &);

// Types that differ in how kernels treat them: floating point of each size, bytes, words
// with and without a sign.
const std::vector<ncclDataType_t> kSome = {ncclFloat32, ncclFloat16, ncclBfloat16,
                                           ncclInt8,    ncclUint64,  ncclFloat8e4m3};

std::vector<ncclRedOp_t> ops_of(int32_t collective) {
  if (!is_reducing(collective)) return {ncclSum};
  return {ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg};
}

// each runs all collectives of so many ranks at one count.
void each(int ranks, const std::vector<ncclDataType_t> &types, size_t count, Runner runner,
          const std::string &what) {
  Comms comms(ranks);
  for (int32_t c = 0; c < MSCCLSH_SENDRECV; c++)
    for (const ncclDataType_t type : types)
      for (const ncclRedOp_t op : ops_of(c))
        for (int root = 0; root < (is_rooted(c) ? ranks : 1); root++)
          for (const bool in_place : {false, true}) {
            Call call;
            call.collective = c;
            call.count = count;
            call.type = type;
            call.op = op;
            call.root = root;
            call.in_place = in_place;
            // Averages that could overflow before they are divided are NCCL's.
            const bool narrow =
                type == ncclFloat16 || type == ncclFloat8e4m3 || type == ncclFloat8e5m2;
            if (is_reducing(c) && op == ncclAvg && narrow)
              left_to_nccl(comms, call, what);
            else
              runner(comms, call, what);
          }
}

std::vector<ncclDataType_t> all_types() {
  std::vector<ncclDataType_t> all;
  for (int t = 0; t < ncclNumTypes; t++) all.push_back(ncclDataType_t(t));
  return all;
}

void programs_two() {
  use_table(standard({2}));
  each(2, all_types(), 33, ran_here, "two ranks");
}

void programs_four() {
  use_table(standard({3, 4}));
  each(4, kSome, 20, ran_here, "four ranks");
  each(3, {ncclFloat32}, 7, ran_here, "three ranks");
}

void nccl_two() { each(2, all_types(), 33, left_to_nccl, "no entry for two ranks"); }

void nccl_four() { each(4, kSome, 20, left_to_nccl, "no entry for four ranks"); }

// Sizes around a slot, a line, a word, and many turns of a slot.
void sizes() {
  use_table(standard({2, 4}));
  for (const int ranks : {2, 4}) {
    Comms comms(ranks);
    for (const size_t count : {1, 2, 3, 31, 127, 128, 129, 1023, 1025, 5000, 20011})
      for (int32_t c = 0; c < MSCCLSH_SENDRECV; c++) {
        Call call;
        call.collective = c;
        call.count = count;
        call.in_place = count % 2 == 0;
        ran_here(comms, call, "sizes");
      }
  }
}

// Chunks: counts that are cut, and those that leave a rest go to NCCL.
void multiples() {
  Bundle b;
  for (int32_t c = 0; c < MSCCLSH_SENDRECV; c++)
    b.add({c, 2, is_rooted(c) ? 0 : -1, false, 4, MSCCLSH_SIMPLE}, 1, 1 << 20);
  use_table(b);
  Comms comms(2);
  for (int32_t c = 0; c < MSCCLSH_SENDRECV; c++)
    for (const size_t count : {4, 8, 100, 4000, 3, 5, 1001}) {
      Call call;
      call.collective = c;
      call.count = count;
      (count % 4 == 0 ? ran_here : left_to_nccl)(comms, call, "cut into four");
    }
}

// Buffers that start at any element: nothing before or behind them is touched.
void misaligned() {
  use_table(standard({2}));
  Comms comms(2);
  for (int32_t c = 0; c < MSCCLSH_SENDRECV; c++)
    for (const ncclDataType_t type : {ncclInt8, ncclFloat16, ncclFloat32, ncclInt64})
      for (const int off : {1, 2, 3, 7})
        for (const bool in_place : {false, true}) {
          Call call;
          call.collective = c;
          call.count = 41;
          call.type = type;
          call.misaligned = off;
          call.in_place = in_place;
          ran_here(comms, call, "misaligned");
        }
}

// Calls of one size follow each other without a pause, each with buffers of its own that
// start anywhere, on each rank elsewhere.
void moving() {
  use_table(standard({2}));
  Comms comms(2);
  for (const size_t count : {2, 64, 3000})
    for (const ncclRedOp_t op : {ncclSum, ncclAvg}) {
      std::vector<std::unique_ptr<Part>> parts[2];
      for (int i = 0; i < 80; i++)
        for (int r = 0; r < 2; r++) {
          Call call;
          call.count = count;
          call.op = op;
          call.in_place = i % 3 == 0;
          call.misaligned = i % 2 ? (i * int(count) + 5 * r) % 64 : 0;
          parts[r].emplace_back(new Part(call, r, 2));
          parts[r].back()->fill(i);
        }
      stub().forget();
      threads(2, [&](int r) {
        for (const auto &p : parts[r])
          GOOD(p->start(comms.comm[size_t(r)], stream_of(*comms.stream[size_t(r)])));
        comms.stream[size_t(r)]->wait();
      });
      EXPECT(stub().collectives() == 0, "NCCL got %d calls", int(stub().collectives()));
      for (int r = 0; r < 2; r++)
        for (const auto &p : parts[r])
          if (!p->check("moving buffers")) return;
    }
}

// What no program knows: operations that the application makes, and nothing at all.
void no_program() {
  use_table(standard({2}));
  Comms comms(2);
  std::vector<ncclRedOp_t> op(2);
  std::vector<std::vector<float>> data(2);
  threads(2, [&](int r) {
    float twice = 2;
    GOOD(ncclRedOpCreatePreMulSum(&op[size_t(r)], &twice, ncclFloat32, ncclScalarHostImmediate,
                                  comms.comm[size_t(r)]));
    data[size_t(r)] = {1, 2, 3};
    stub().forget();
  });
  threads(2, [&](int r) {
    mscclsh::HostStream &s = *comms.stream[size_t(r)];
    float *at = data[size_t(r)].data();
    GOOD(ncclAllReduce(at, at, 3, ncclFloat32, op[size_t(r)], comms.comm[size_t(r)],
                       static_cast<cudaStream_t>(stream_of(s))));
    GOOD(ncclRedOpDestroy(op[size_t(r)], comms.comm[size_t(r)]));
    s.wait();
  });
  EXPECT(stub().calls("ncclAllReduce") == 2, "NCCL got %d", int(stub().calls("ncclAllReduce")));
  for (const std::vector<float> &d : data)
    EXPECT(d[0] == 4 && d[1] == 8 && d[2] == 12, "%g %g %g", double(d[0]), double(d[1]),
           double(d[2]));
  threads(2, [&](int r) {
    GOOD(ncclAllReduce(nullptr, nullptr, 0, ncclFloat32, ncclSum, comms.comm[size_t(r)], nullptr));
  });
}

// Bcast is Broadcast in place, and the null stream is one, too: what runs there is over
// once the communicator is gone.
void null_stream() {
  use_table(standard({2}));
  ncclUniqueId id;
  GOOD(ncclGetUniqueId(&id));
  std::vector<ncclComm_t> comm(2);
  std::vector<std::vector<int32_t>> data = {{7, 8, 9}, {0, 0, 0}};
  threads(2, [&](int r) { GOOD(ncclCommInitRank(&comm[size_t(r)], 2, id, r)); });
  stub().forget();
  threads(2, [&](int r) {
    GOOD(ncclBcast(data[size_t(r)].data(), 3, ncclInt32, 0, comm[size_t(r)], nullptr));
  });
  threads(2, [&](int r) { GOOD(ncclCommDestroy(comm[size_t(r)])); });
  EXPECT(stub().collectives() == 0 && stub().calls("ncclBcast") == 0, "a program took it");
  EXPECT(data[1] == data[0], "%d %d %d", data[1][0], data[1][1], data[1][2]);
}

// In the order of a stream a program's result feeds NCCL's call, and the other way round.
void one_stream() {
  Bundle b;
  b.add({MSCCLSH_ALLREDUCE, 2}, 1, 1 << 20);
  use_table(b);
  Comms comms(2);
  std::vector<std::vector<float>> data = {{1, 2}, {3, 5}}, gathered = {{0, 0, 0, 0}, {0, 0, 0, 0}};
  stub().forget();
  stub().slow(0, 5);
  threads(2, [&](int r) {
    const size_t i = size_t(r);
    const cudaStream_t s = static_cast<cudaStream_t>(stream_of(*comms.stream[i]));
    for (int again = 0; again < 10; again++) {
      GOOD(
          ncclAllReduce(data[i].data(), data[i].data(), 2, ncclFloat32, ncclSum, comms.comm[i], s));
      GOOD(ncclAllGather(data[i].data(), gathered[i].data(), 2, ncclFloat32, comms.comm[i], s));
      GOOD(ncclAllReduce(gathered[i].data(), data[i].data(), 2, ncclFloat32, ncclAvg, comms.comm[i],
                         s));
    }
    comms.stream[i]->wait();
  });
  stub().slow(0, 0);
  EXPECT(stub().calls("ncclAllGather") == 20 && stub().calls("ncclAllReduce") == 0,
         "NCCL got what it should");
  // Ten times doubled; the average of two equal ones is one of them.
  const float want[2] = {4 * 512, 7 * 512};
  for (const std::vector<float> &d : data)
    EXPECT(d[0] == want[0] && d[1] == want[1], "%g %g", double(d[0]), double(d[1]));
}

// planted runs a call of two ranks by a program in which a mistake was made, which the
// checks must notice: in a result, in the input, or next to a buffer.
void planted(const std::function<void(HandProgram &)> &mistake, const std::string &what) {
  Bundle b;
  b.add({MSCCLSH_ALLTOALL, 2}, 1, 1 << 20);
  mistake(b.programs[0]);
  use_table(b);
  Comms comms(2);
  Call call;
  call.collective = MSCCLSH_ALLTOALL;
  call.count = 32;
  bool noticed = false;
  std::vector<std::unique_ptr<Part>> parts;
  for (int r = 0; r < 2; r++) {
    parts.emplace_back(new Part(call, r, 2));
    parts.back()->fill(1);
  }
  stub().forget();
  threads(2, [&](int r) {
    GOOD(parts[size_t(r)]->start(comms.comm[size_t(r)], stream_of(*comms.stream[size_t(r)])));
    comms.stream[size_t(r)]->wait();
  });
  std::string why;
  for (const auto &p : parts) noticed |= p->wrong(&why);
  EXPECT(stub().collectives() == 0, "%s: the program was run", what.c_str());
  EXPECT(noticed, "%s was not noticed", what.c_str());
}

// A rank sends the other's block in the place of its own.
void planted_block() {
  planted([](HandProgram &p) { p.steps[1][0][0].src_chunk = 1; }, "a wrong block");
}

// A block comes where it doesn't belong.
void planted_place() {
  planted([](HandProgram &p) { p.steps[0][0][2].dst_chunk = 0; }, "a wrong place");
}

// A rank keeps its own block to itself.
void planted_lost() {
  planted([](HandProgram &p) { p.steps[0][0].erase(p.steps[0][0].begin() + 1); }, "a lost copy");
}

}  // namespace

std::vector<Case> cases_of_values() {
  return {{"programs, two ranks", {}, programs_two},
          {"programs, four ranks", {}, programs_four},
          {"NCCL, two ranks",
           {{"MSCCLSH_TABLE", ""}, {"MSCCLSH_DENY", ""}, {"MSCCLSH_NCCL", "0"}},
           nccl_two},
          {"NCCL, four ranks", {{"MSCCLSH_NCCL", "0"}}, nccl_four},
          {"sizes", {}, sizes},
          {"multiples", {}, multiples},
          {"misaligned", {}, misaligned},
          {"moving", {}, moving},
          {"no program", {}, no_program},
          {"null stream", {}, null_stream},
          {"one stream", {}, one_stream},
          {"planted: a block", {}, planted_block},
          {"planted: a place", {}, planted_place},
          {"planted: a loss", {}, planted_lost}};
}
