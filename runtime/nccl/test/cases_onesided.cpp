// One-sided programs: every collective by packets and by pipelines, from threads and from
// processes, in place and not, beside programs of sends and receives and NCCL, in windows and
// out of them.
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "world.h"

namespace {

std::vector<ncclRedOp_t> ops_of(int32_t collective) {
  if (!is_reducing(collective)) return {ncclSum};
  return {ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg};
}

bool narrow_average(const Call &c) {
  const bool narrow = c.type == ncclFloat16 || c.type == ncclFloat8e4m3 || c.type == ncclFloat8e5m2;
  return is_reducing(c.collective) && c.op == ncclAvg && narrow;
}

// calls are all calls of a count: types, operations, roots, places.
std::vector<Call> calls(int ranks, size_t count, bool all_types) {
  std::vector<Call> list;
  for (int32_t c = 0; c < MSCCLSH_SENDRECV; c++)
    for (int t = 0; t < ncclNumTypes; t += all_types ? 1 : 3)
      for (const ncclRedOp_t op : ops_of(c))
        for (int root = 0; root < (is_rooted(c) ? ranks : 1); root++)
          for (const bool in_place : {false, true}) {
            Call call;
            call.collective = c;
            call.count = count;
            call.type = ncclDataType_t(t);
            call.op = op;
            call.root = root;
            call.in_place = in_place;
            list.push_back(call);
          }
  return list;
}

// piped is one_sided by pipelines, small calls aside.
Bundle piped(const std::vector<int32_t> &ranks) {
  Bundle b = one_sided(ranks), to;
  for (const HandEntry &e : b.entries) {
    Shape s = {e.entry.collective, e.entry.ranks};
    s.root = e.entry.root;
    to.add_one(s, Way::kPipeline, 1, 1 << 18);
  }
  return to;
}

void packets_two() {
  use_table(one_sided({2}));
  Comms comms(2);
  for (const Call &c : calls(2, 40, true))
    (narrow_average(c) ? left_to_nccl : ran_here)(comms, c, "packets, two ranks");
}

void packets_four() {
  use_table(one_sided({3, 4}));
  for (const int ranks : {3, 4}) {
    Comms comms(ranks);
    for (const Call &c : calls(ranks, 24, false))
      (narrow_average(c) ? left_to_nccl : ran_here)(comms, c, "packets, more ranks");
  }
}

void pipelines() {
  use_table(piped({2, 3}));
  for (const int ranks : {2, 3}) {
    Comms comms(ranks);
    for (const size_t count : {8, 1000})
      for (const Call &c : calls(ranks, count, ranks == 2))
        (narrow_average(c) ? left_to_nccl : ran_here)(comms, c, "pipelines");
  }
}

// Chunks that are no multiples of a program's alignment are NCCL's, whatever the type.
void units() {
  Bundle b;
  Shape s = {MSCCLSH_ALLREDUCE, 2};
  s.parts = 2;
  b.add_one(s, Way::kPackets, 1, 1 << 18);
  use_table(b);
  Comms comms(2);
  for (const ncclDataType_t type : {ncclInt8, ncclFloat16, ncclFloat32, ncclInt64})
    for (const size_t count : {1, 2, 3, 4, 6, 8, 12, 15, 16, 24, 32, 80}) {
      Call c;
      c.count = count;
      c.type = type;
      const size_t size = type == ncclInt8      ? 1
                          : type == ncclFloat16 ? 2
                          : type == ncclFloat32 ? 4
                                                : 8;
      const bool fits = count % 2 == 0 && count / 2 * size % kUnit == 0;
      (fits ? ran_here : left_to_nccl)(comms, c, "chunks and their unit");
    }
}

// mixed has programs of each kind side by side: by size packets, a pipeline, sends and
// receives, and NCCL.
Bundle mixed(int32_t ranks) {
  Bundle b;
  for (int32_t c = 0; c < MSCCLSH_SENDRECV; c++) {
    Shape s = {c, ranks};
    s.root = is_rooted(c) ? 0 : -1;
    b.add_one(s, Way::kPackets, 1, 2047, "small" + std::to_string(c));
    b.add_one(s, Way::kPipeline, 2048, 8191, "middle" + std::to_string(c));
    b.add(s, 8192, 16383, "large" + std::to_string(c));
  }
  return b;
}

// random_call is another call for each turn, the same on all ranks but for its place.
Call random_call(int turn, int rank) {
  uint32_t x = uint32_t(turn) * 2654435761u;
  x ^= x >> 15;
  Call c;
  c.collective = int32_t(x % MSCCLSH_SENDRECV);
  c.count = 8 * (1 + (x >> 8) % 300) << (x >> 20) % 3;
  c.type = x >> 24 & 1 ? ncclFloat32 : ncclInt32;
  c.op = x >> 25 & 1 ? ncclMax : ncclSum;
  c.in_place = c.collective != MSCCLSH_ALLTOALL ? (x >> 26 & 1) != 0 : false;
  if (c.collective != MSCCLSH_ALLTOALL && x >> 27 & 1) c.in_place = rank % 2 == 0;
  c.misaligned = x >> 28 & 1 ? (turn + rank) % 64 : 0;
  return c;
}

// together is the entries and programs of several.
Bundle together(const std::vector<Bundle> &bundles) {
  Bundle all;
  for (const Bundle &b : bundles) {
    for (HandEntry e : b.entries) {
      for (int32_t *p : {&e.entry.in_place, &e.entry.out_of_place})
        if (*p >= 0) *p += int32_t(all.programs.size());
      e.name += "_" + std::to_string(e.entry.ranks);
      all.entries.push_back(e);
    }
    all.programs.insert(all.programs.end(), b.programs.begin(), b.programs.end());
  }
  return all;
}

// Calls of all kinds and sizes follow each other without a pause, each with buffers of its
// own that start anywhere; some ranks call in place and others don't.
void threads_in_a_row() {
  use_table(together({mixed(2), mixed(3), mixed(4)}));
  for (const int ranks : {2, 3, 4}) {
    Comms comms(ranks);
    constexpr int kCalls = 150;
    std::vector<std::vector<std::unique_ptr<Part>>> parts(static_cast<size_t>(ranks));
    for (int r = 0; r < ranks; r++)
      for (int i = 0; i < kCalls; i++) {
        parts[size_t(r)].emplace_back(new Part(random_call(i, r), r, ranks));
        parts[size_t(r)].back()->fill(i);
      }
    stub().forget();
    threads(ranks, [&](int r) {
      for (const auto &p : parts[size_t(r)])
        GOOD(p->start(comms.comm[size_t(r)], stream_of(*comms.stream[size_t(r)])));
      comms.stream[size_t(r)]->wait();
    });
    EXPECT(stub().collectives() > 0 && stub().collectives() < uint64_t(kCalls * ranks * 3 / 4),
           "NCCL got %d calls of %d", int(stub().collectives()), kCalls * ranks);
    for (int r = 0; r < ranks; r++)
      for (const auto &p : parts[size_t(r)])
        if (!p->check("calls in a row")) return;
  }
}

// Board is where rank 0 tells the others the identifier of a communicator.
struct Board {
  std::atomic<int> told;
  ncclUniqueId id;
};

ncclComm_t join(Board *board, int rank, int ranks) {
  if (rank == 0) {
    GOOD(ncclGetUniqueId(&board->id));
    board->told = 1;
  }
  while (board->told == 0) usleep(100);
  ncclComm_t comm = nullptr;
  GOOD(ncclCommInitRank(&comm, ranks, board->id, rank));
  return comm;
}

Board *new_board() {
  void *at =
      mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return new (at) Board{};
}

void processes_in_a_row() {
  for (const int ranks : {2, 3}) {
    use_table(mixed(ranks));
    Board *board = new_board();
    processes(ranks, [&](int r) {
      const ncclComm_t comm = join(board, r, ranks);
      std::vector<std::unique_ptr<Part>> parts;
      for (int i = 0; i < 120; i++) {
        parts.emplace_back(new Part(random_call(i, r), r, ranks));
        parts.back()->fill(i);
      }
      stub().forget();
      mscclsh::HostStream stream;
      for (const auto &p : parts) GOOD(p->start(comm, stream_of(stream)));
      stream.wait();
      EXPECT(stub().collectives() > 0 && stub().collectives() < 90, "NCCL got %d calls",
             int(stub().collectives()));
      for (const auto &p : parts)
        if (!p->check("calls of processes in a row")) break;
      GOOD(ncclCommDestroy(comm));
    });
  }
}

// Calls in windows read peers' memory, or have ports write there, in place and not; others have
// packets.
struct Registered {
  Registered(Comms &comms, size_t bytes) : comms(comms), bytes(bytes), at(2), window(2) {
    for (void *&p : at) GOOD(ncclMemAlloc(&p, 2 * bytes));
    threads(2, [&](int r) {
      GOOD(ncclCommWindowRegister(comms.comm[size_t(r)], at[size_t(r)], 2 * bytes,
                                  &window[size_t(r)], NCCL_WIN_COLL_SYMMETRIC));
    });
  }
  ~Registered() {
    threads(2, [&](int r) {
      GOOD(ncclCommWindowDeregister(comms.comm[size_t(r)], window[size_t(r)]));
    });
    for (void *p : at) GOOD(ncclMemFree(p));
  }
  // part is a rank's part of a call with buffers in the window, shifted.
  std::unique_ptr<Part> part(const Call &c, int r, size_t shift) const {
    char *low = static_cast<char *>(at[size_t(r)]) + shift, *high = low + bytes;
    void *send = low, *recv = high;
    const Part sizes(c, r, 2, nullptr, nullptr);
    if (c.in_place) {
      send = recv = low;
      if (sizes.send_bytes() < sizes.recv_bytes()) send = low + size_t(r) * sizes.send_bytes();
      if (sizes.send_bytes() > sizes.recv_bytes()) recv = low + size_t(r) * sizes.recv_bytes();
    }
    return std::unique_ptr<Part>(new Part(c, r, 2, send, recv));
  }
  Comms &comms;
  const size_t bytes;
  std::vector<void *> at;
  std::vector<ncclWindow_t> window;
};

void windows() {
  Bundle b;
  const std::vector<int32_t> kinds = {MSCCLSH_ALLREDUCE, MSCCLSH_ALLGATHER, MSCCLSH_REDUCESCATTER,
                                      MSCCLSH_ALLTOALL};
  for (const int32_t c : kinds) {
    b.add_one({c, 2}, Way::kGets, 1, 1 << 16, "gets" + std::to_string(c)).priority = 1;
    b.add_one({c, 2}, Way::kPackets, 1, 1 << 16, "packets" + std::to_string(c));
  }
  b.add_one({MSCCLSH_ALLGATHER, 2}, Way::kPorts, 4096, 1 << 16, "ports").priority = 2;
  use_table(b);
  Comms comms(2);
  const Registered w(comms, 1 << 16);
  int seed = 0;
  for (const size_t shift : {0, 64, 8, 4})
    for (const size_t count : {8, 1024, 200, 4000})
      for (const int32_t k : kinds)
        for (const bool in_place : {false, true})
          for (const ncclRedOp_t op : ops_of(k)) {
            Call c;
            c.collective = k;
            c.count = count;
            c.op = op;
            c.in_place = in_place && k != MSCCLSH_ALLTOALL;
            std::vector<std::unique_ptr<Part>> parts;
            for (int r = 0; r < 2; r++) {
              parts.push_back(w.part(c, r, shift));
              parts.back()->fill(++seed);
              parts[size_t(r)]->fill(seed - r);
            }
            stub().forget();
            threads(2, [&](int r) {
              for (int again = 0; again < 2 && (again == 0 || !in_place); again++)
                GOOD(parts[size_t(r)]->start(comms.comm[size_t(r)],
                                             stream_of(*comms.stream[size_t(r)])));
              comms.stream[size_t(r)]->wait();
            });
            EXPECT(stub().collectives() == 0, "%s: NCCL got it", c.text().c_str());
            for (const auto &p : parts) p->check("in windows");
            c.misaligned = int(shift) % 5;
            ran_here(comms, c, "beside windows");
          }
}

// Scratch that is too large leaves entries unloaded, the later ones, and calls that would take
// more than there may be are NCCL's.
void little_scratch() {
  Bundle b;                                                             // MSCCLSH_SCRATCH is 65536
  b.add_one({MSCCLSH_ALLREDUCE, 2}, Way::kPackets, 1, 4096, "first");   // 2 * 4 * 4096
  b.add_one({MSCCLSH_ALLGATHER, 2}, Way::kPackets, 1, 8192, "second");  // 2 * 4 * 4096
  b.add_one({MSCCLSH_ALLTOALL, 2}, Way::kPackets, 1, 4096, "third");    // 2 * 4 * 2048 too much
  use_table(b);
  const std::string log = "/tmp/mscclsh-one-" + std::to_string(getpid());
  setenv("MSCCLSH_LOG", ("choice,setup:" + log).c_str(), 1);
  {
    Comms comms(2);
    Call c;
    c.count = 1024;
    ran_here(comms, c, "scratch for it");
    c.collective = MSCCLSH_ALLGATHER;
    ran_here(comms, c, "scratch for it");
    c.collective = MSCCLSH_ALLTOALL;
    c.count = 8;
    left_to_nccl(comms, c, "no scratch left");
  }
  std::string text;
  if (FILE *f = std::fopen(log.c_str(), "r")) {
    char piece[4096];
    for (size_t n; (n = std::fread(piece, 1, sizeof piece, f)) > 0;) text.append(piece, n);
    std::fclose(f);
    std::remove(log.c_str());
  }
  EXPECT(count_of(text, "third: unloaded") >= 1, "the log: %s", text.c_str());
  EXPECT(count_of(text,
                  "third: its scratch takes 16384 bytes more, and of MSCCLSH_SCRATCH earlier "
                  "entries leave 0") >= 1,
         "the log: %s", text.c_str());
}

// Open-ended entries take what scratch there is, and leave larger calls.
void all_scratch() {
  Bundle b;
  b.add_one({MSCCLSH_ALLREDUCE, 2}, Way::kPackets, 1, INT64_MAX, "all");
  use_table(b);
  Comms comms(2);
  Call c;
  c.count = 2048;  // 8 times 8192 bytes
  ran_here(comms, c, "all of the scratch");
  c.count = 2050;
  left_to_nccl(comms, c, "more than the scratch");
}

// A program that makes no sense to the engine leaves its entry unloaded, and others are used.
void refused() {
  Bundle b = one_sided({2});
  b.programs[0].one->operands[0].index = 99;  // of the allreduce
  b.add_one({MSCCLSH_ALLREDUCE, 2}, Way::kPipeline, 1, 1 << 18, "other").priority = -1;
  use_table(b);
  Comms comms(2);
  Call c;
  c.count = 64;
  for (int32_t k = 0; k < MSCCLSH_SENDRECV; k++) {
    c.collective = k;
    ran_here(comms, c, "beside a program that was refused");
  }
}

// A mistake in a program is noticed by the checks of these cases: a rank takes its own packets
// for another one's.
void planted() {
  Bundle b;
  b.add_one({MSCCLSH_ALLTOALL, 2}, Way::kPackets, 1, 1 << 18);
  for (mscclsh_operand &o : b.programs[0].one->operands)
    if (o.rank == 1 && o.buf == 0 && o.index == 1) o.index = 0;
  use_table(b);
  Comms comms(2);
  Call call;
  call.collective = MSCCLSH_ALLTOALL;
  call.count = 32;
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
  bool noticed = false;
  for (const auto &p : parts) noticed |= p->wrong(&why);
  EXPECT(stub().collectives() == 0 && noticed, "a wrong block was not noticed");
}

// A rank alone is ended by its watchdog, and by an abort.
void ended() {
  use_table(one_sided({2}));
  ncclUniqueId id;
  GOOD(ncclGetUniqueId(&id));
  std::vector<ncclComm_t> comm(2);
  threads(2, [&](int r) { GOOD(ncclCommInitRank(&comm[size_t(r)], 2, id, r)); });
  std::vector<float> x(64, 1);
  mscclsh::HostStream stream;
  GOOD(ncclAllReduce(x.data(), x.data(), 64, ncclFloat32, ncclSum, comm[0],
                     static_cast<cudaStream_t>(stream_of(stream))));
  stream.wait();
  ncclResult_t state = ncclSuccess;
  for (int i = 0; i < 1000 && state == ncclSuccess; i++, usleep(10000))
    GOOD(ncclCommGetAsyncError(comm[0], &state));
  EXPECT(state != ncclSuccess, "the watchdog's word");
  for (const ncclComm_t c : comm) GOOD(ncclCommAbort(c));
  Comms again(2);
  Call c;
  c.count = 64;
  ran_here(again, c, "a communicator after it");
}

}  // namespace

std::vector<Case> cases_of_onesided() {
  return {{"one-sided: packets, two", {}, packets_two},
          {"one-sided: packets, more", {}, packets_four},
          {"one-sided: pipelines", {}, pipelines},
          {"one-sided: units", {}, units},
          {"one-sided: in a row", {}, threads_in_a_row},
          {"one-sided: processes", {}, processes_in_a_row},
          {"one-sided: windows", {}, windows},
          {"one-sided: little scratch", {{"MSCCLSH_SCRATCH", "65536"}}, little_scratch},
          {"one-sided: all scratch", {{"MSCCLSH_SCRATCH", "65536"}}, all_scratch},
          {"one-sided: refused", {}, refused},
          {"one-sided: planted", {}, planted},
          {"one-sided: ended", {{"MSCCLSH_WATCHDOG", "1"}}, ended}};
}
