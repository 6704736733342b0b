#include "one_process.h"
#include "process_job.h"

#include <chrono>
#include <memory>

#include "process_streams.h"

namespace {

// mixed runs programs of all protocols in turns on one communicator: allreduces in and
// out of place, and a broadcast between them whose root could run ahead.
void mixed(const Setting &s) {
  Comm comm(s, 0);
  const int32_t n = s.ranks, root = n - 1;
  struct Entry {
    std::unique_ptr<Job> job;
    bool in_place;
  };
  std::vector<Entry> jobs;
  for (int32_t protocol = 0; protocol <= MSCCLSH_DIRECT; protocol++) {
    auto add = [&](Program p, bool in_place, int32_t from) {
      jobs.push_back({std::unique_ptr<Job>(
                          new Job(&comm, std::move(p), protocol, protocol % 2 ? 37 : 130, from)),
                      in_place});
      OK(jobs.back().job->prepare());
    };
    add(split_ring(n), true, -1);
    add(chain(n, root), false, root);
    add(all_pairs(n), false, -1);
    if (protocol == MSCCLSH_DIRECT) continue;  // these rely on slots
    add(ring(n, 2, 1), true, -1);
    add(gather(n), true, -1);
  }
  for (int round = 0; round < s.rounds && failures == 0; round++) {
    for (size_t i = 0; i < jobs.size(); i++) jobs[i].job->fill(round + int(i));
    for (size_t i = 0; i < jobs.size(); i++) {
      const int32_t launches = jobs[i].in_place ? 1 : 1 + (round + int32_t(i)) % 4;
      OK(mscclsh_enqueue(jobs[i].job->prog, launches, err, sizeof err));
    }
    OK(mscclsh_sync(comm.comm, err, sizeof err));
    for (size_t i = 0; i < jobs.size(); i++) jobs[i].job->check(round + int(i), "mixed");
  }
}

// mapped counts the host's shared files that are mapped here, none on a GPU.
int mapped() {
  int n = 0;
  char line[4096];
  FILE *f = std::fopen("/proc/self/maps", "r");
  while (f != nullptr && std::fgets(line, sizeof line, f) != nullptr)
    n += std::strstr(line, "memfd:mscclsh") != nullptr;
  if (f != nullptr) std::fclose(f);
  return n;
}

// buffers attaches memory of the caller, of which other processes map the part that is a
// buffer, and lets go of it again.
void buffers(const Setting &s) {
  Comm comm(s, 0);
  Job j(&comm, all_pairs(s.ranks), MSCCLSH_DIRECT, 50, -1);
  Job slots(&comm, all_pairs(s.ranks), MSCCLSH_LL, 50, -1);
  const int32_t mine = s.process;  // the rank
  const int64_t bytes = 4 * j.elems();
  const int before = mapped();
  int own = 0;
  for (int round = 0; round < 3; round++) {
    void *memory = nullptr;
    OK(mscclsh_alloc(comm.comm, mine, 3 * bytes, &memory, err, sizeof err));
    char *at = static_cast<char *>(memory) + 4 * round;
    OK(mscclsh_attach(j.prog, mine, 0, at, bytes, err, sizeof err));
    OK(mscclsh_attach(j.prog, mine, 1, at + bytes, bytes, err, sizeof err));
    OK(j.prepare());
    j.fill(round);
    OK(mscclsh_enqueue(j.prog, 3, err, sizeof err));
    OK(mscclsh_sync(comm.comm, err, sizeof err));
    j.check(round, "attached");
    OK(mscclsh_attach(j.prog, mine, 0, nullptr, 0, err, sizeof err));
    OK(mscclsh_attach(j.prog, mine, 1, nullptr, 0, err, sizeof err));
    OK(j.prepare());
    OK(mscclsh_free(comm.comm, mine, memory, err, sizeof err));
    j.fill(round);
    OK(mscclsh_enqueue(j.prog, 1, err, sizeof err));
    OK(mscclsh_sync(comm.comm, err, sizeof err));
    j.check(round, "not attached");
    if (round == 0) own = mapped();
    EXPECT(mapped() == own, "round %d: %d files are mapped, after the first round %d", round,
           mapped(), own);
  }
  // What is too small in one process is refused in all.
  void *memory = nullptr;
  OK(mscclsh_alloc(comm.comm, mine, bytes, &memory, err, sizeof err));
  OK(mscclsh_attach(j.prog, mine, 1, memory, mine == 1 ? bytes - 1 : bytes, err, sizeof err));
  EXPECT(j.prepare() == MSCCLSH_EREFUSED && has("as buffer 1 of rank 1 has 399 bytes") &&
             has("process 1: ") == (mine != 1),
         "got %s", err);
  // Memory that can't be mapped elsewhere does for programs with slots only.
  std::vector<float> unshared(size_t(bytes) / 4);
  if (!on_gpu()) {
    OK(mscclsh_attach(j.prog, mine, 1, unshared.data(), bytes, err, sizeof err));
    EXPECT(j.prepare() == MSCCLSH_EREFUSED && has("can't be told to other processes"), "got %s",
           err);
    OK(mscclsh_attach(slots.prog, mine, 1, unshared.data(), bytes, err, sizeof err));
    OK(slots.prepare());
    slots.fill(7);
    OK(mscclsh_enqueue(slots.prog, 1, err, sizeof err));
    OK(mscclsh_sync(comm.comm, err, sizeof err));
    slots.check(7, "memory of this process alone");
  }
  OK(mscclsh_attach(j.prog, mine, 1, nullptr, 0, err, sizeof err));
  OK(j.prepare());
  OK(mscclsh_free(comm.comm, mine, memory, err, sizeof err));
  OK(mscclsh_unload(j.prog, err, sizeof err));
  j.prog = nullptr;
  EXPECT(mapped() == before, "%d files are mapped, before %d", mapped(), before);
}

// streams launches on a stream of the caller's, as it is and captured.
void streams(const Setting &s) {
  Comm comm(s, 0);
  const int32_t device = comm.devices[size_t(s.process)];
  Stream stream(device);
  for (int32_t protocol : {int32_t(MSCCLSH_LL), int32_t(MSCCLSH_DIRECT)}) {
    Job j(&comm, all_pairs(s.ranks), protocol, 40, -1);
    OK(j.prepare());
    for (int round = 0; round < 20; round++) {
      j.fill(round);
      const bool captured = round % 2 == 1;
      std::unique_ptr<Graph> graph(captured ? new Graph(stream) : nullptr);
      for (int k = 0; k < 3; k++)
        OK(mscclsh_enqueue_on(j.prog, device, stream.get(), err, sizeof err));
      if (captured) graph->end(stream);
      if (captured) graph->launch(stream);
      OK(mscclsh_sync(comm.comm, err, sizeof err));
      j.check(round, captured ? "captured" : "on a stream");
    }
    EXPECT(
        mscclsh_enqueue_on(j.prog, device + 100, stream.get(), err, sizeof err) == MSCCLSH_EINVAL &&
            has("no rank of this process is on device"),
        "got %s", err);
  }
}

// agree gives the processes different things, which all of them refuse, and then the same.
void agree(const Setting &s) {
  Comm comm(s, 0);
  const int32_t mine = s.process;
  mscclsh_prog *prog = nullptr;
  Program one = chain(s.ranks, 0), other = chain(s.ranks, 1);
  mscclsh_program flat = (mine == 0 ? one : other).flatten(MSCCLSH_LL, 4, 256);
  EXPECT(mscclsh_load(comm.comm, &flat, &prog, err, sizeof err) == MSCCLSH_EINVAL &&
             has("was given something else"),
         "got %s", err);
  Program bad = chain(s.ranks, 0);
  if (mine == 1) bad.gpus[0][0].steps[0].src_chunk = 9;
  flat = bad.flatten(MSCCLSH_LL, 4, 256);
  EXPECT(mscclsh_load(comm.comm, &flat, &prog, err, sizeof err) == MSCCLSH_EINVAL &&
             has("rank 0 thread block 0 step 0: its source is chunks 9") &&
             has("process 1: ") == (mine == 0),
         "got %s", err);
  Job j(&comm, chain(s.ranks, 0), MSCCLSH_LL, mine == 0 ? 8 : 9, 0);
  EXPECT(j.prepare() == MSCCLSH_EINVAL && has("was given something else"), "got %s", err);
  j.chunk = 8;
  OK(j.prepare());
  float x = 0;
  EXPECT(mscclsh_upload(j.prog, 1 - mine, 0, 0, &x, 4, err, sizeof err) == MSCCLSH_EINVAL &&
             has("lives in process"),
         "got %s", err);
  j.fill(1);
  OK(mscclsh_enqueue(j.prog, 1, err, sizeof err));
  OK(mscclsh_sync(comm.comm, err, sizeof err));
  j.check(1, "after refusals");
}

// stuck waits until the communicator says that the watchdog ended a launch; err then
// has its words.
void stuck(const Comm &comm) {
  int32_t result = MSCCLSH_OK;
  for (int i = 0; result == MSCCLSH_OK && i < 2000; i++) {
    result = mscclsh_sync(comm.comm, err, sizeof err);
    if (result == MSCCLSH_OK) usleep(10000);
  }
  EXPECT(result == MSCCLSH_ESTUCK, "got %d, %s", result, err);
}

// waits_for is whether a block's record says that it waited for that rank.
bool waits_for(const Comm &comm, int32_t rank) {
  mscclsh_wait w[64];
  int64_t have = 0;
  OK(mscclsh_waits(comm.comm, w, 64, &have, err, sizeof err));
  for (int64_t i = 0; i < have && i < 64; i++)
    if (w[i].waits_for != MSCCLSH_WAIT_STEP && w[i].peer == rank) return true;
  return false;
}

// missing runs a program in which rank 1 does not send what rank 0 waits for.
void missing(const Setting &s) {
  for (int32_t protocol = 0; protocol < MSCCLSH_DIRECT; protocol++) {
    Comm comm(s, kWatchdog / 4);
    Program p(2);
    p.chunks_total = 1;
    p.chunks[1] = 1;
    mscclsh_step &step = p.step(0, p.block(0), MSCCLSH_RECV);
    step.recv_peer = 1;
    step.dst_buf = 1;
    step.chan = 5;
    p.step(1, p.block(1), MSCCLSH_NOP);
    Job j(&comm, std::move(p), protocol, 9, -1);
    OK(j.prepare());
    OK(mscclsh_enqueue(j.prog, 1, err, sizeof err));
    stuck(comm);
    if (s.process == 0) {
      EXPECT(
          has("rank 0 thread block 0 in step 0 of tile 0 for a message from rank 1 on channel 5"),
          "got %s", err);
      EXPECT(waits_for(comm, 1), "no record names rank 1");
    } else {
      EXPECT(has("the watchdog of another process ended a launch"), "got %s", err);
    }
    EXPECT(mscclsh_enqueue(j.prog, 1, err, sizeof err) == MSCCLSH_EDEAD, "got %s", err);
  }
}

// leave has one process go, without a word, before the others load a program.
void leave(const Setting &s) {
  Comm comm(s, kWatchdog);
  if (s.process == s.processes - 1) _exit(0);
  Program p = chain(s.ranks, 0);
  mscclsh_program flat = p.flatten(MSCCLSH_LL, 4, 256);
  mscclsh_prog *prog = nullptr;
  EXPECT(mscclsh_load(comm.comm, &flat, &prog, err, sizeof err) == MSCCLSH_EPEER &&
             has("process 2, which held rank 2, has ended"),
         "got %s", err);
  EXPECT(mscclsh_load(comm.comm, &flat, &prog, err, sizeof err) == MSCCLSH_EDEAD, "got %s", err);
}

// killed launches without end until the parent kills the process of one rank.
void killed(const Setting &s) {
  Comm comm(s, kWatchdog);
  Job pairs(&comm, all_pairs(s.ranks), MSCCLSH_LL, 200, -1);
  Job whole(&comm, all_pairs(s.ranks), MSCCLSH_DIRECT, 200, -1);
  Job simple(&comm, all_pairs(s.ranks), MSCCLSH_SIMPLE, 200, -1);
  for (Job *j : {&pairs, &whole, &simple}) {
    OK(j->prepare());
    j->fill(1);
  }
  EXPECT(send(s.fd, &kRunning, sizeof kRunning, MSG_NOSIGNAL) == sizeof kRunning, "no parent");
  int32_t result = MSCCLSH_OK;
  while (result == MSCCLSH_OK) {
    for (Job *j : {&pairs, &whole, &simple})
      if (result == MSCCLSH_OK) result = mscclsh_enqueue(j->prog, 5, err, sizeof err);
    if (result == MSCCLSH_OK) result = mscclsh_sync(comm.comm, err, sizeof err);
  }
  // Whoever was about to launch is told that it is too late; who waited, the report.
  if (result == MSCCLSH_EDEAD) stuck(comm);
  const std::string report = err;
  const std::string gone = "process " + std::to_string(s.victim % s.processes) +
                           ", which held rank " + std::to_string(s.victim) + ", has ended";
  EXPECT(has(gone.c_str()), "got %s", report.c_str());
  EXPECT(waits_for(comm, s.victim), "no record names rank %d: %s", s.victim, report.c_str());
  EXPECT(mscclsh_enqueue(pairs.prog, 1, err, sizeof err) == MSCCLSH_EDEAD, "got %s", err);
  std::printf("process %d: %s\n", self, report.c_str());
}

}  // namespace

int run_process(const Setting &s) {
  self = s.process;
  struct {
    const char *name;
    void (*run)(const Setting &);
  } scenarios[] = {{"mixed", mixed},           {"buffers", buffers},  {"streams", streams},
                   {"agree", agree},           {"missing", missing},  {"leave", leave},
                   {"kill", killed},           {"bound", test_bound}, {"fds", test_fds},
                   {"abort", test_abort},      {"order", test_order}, {"onesided", test_onesided},
                   {"onecalls", test_onecalls}};
  for (auto &c : scenarios) {
    if (s.scenario != c.name) continue;
    c.run(s);
    std::fflush(stdout);
    return failures != 0;
  }
  std::printf("there is no scenario %s\n", s.scenario.c_str());
  return 2;
}
