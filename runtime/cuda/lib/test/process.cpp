#include "process.h"

#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>

#include "process_streams.h"
#include "programs.h"

namespace {

int failures = 0;
char err[1024];
int32_t self = 0;

#define EXPECT(cond, ...)                                           \
  do {                                                              \
    if (!(cond)) {                                                  \
      failures++;                                                   \
      std::printf("%s:%d: process %d: ", __FILE__, __LINE__, self); \
      std::printf(__VA_ARGS__);                                     \
      std::printf("\n");                                            \
    }                                                               \
  } while (0)
#define OK(call) EXPECT((call) == MSCCLSH_OK, "%s: %s", #call, err)

bool has(const char *part) { return std::strstr(err, part) != nullptr; }

// exchange sends what this process brings to the parent, which sends back all.
struct Line {
  int fd;
  int32_t processes;
};

int32_t exchange(void *context, const void *mine, void *all, int64_t bytes) {
  const Line &line = *static_cast<Line *>(context);
  auto put = [&](const void *p, size_t n) {
    for (size_t done = 0; done < n;) {
      const ssize_t k = send(line.fd, static_cast<const char *>(p) + done, n - done, MSG_NOSIGNAL);
      if (k <= 0) return false;
      done += size_t(k);
    }
    return true;
  };
  if (!put(&bytes, sizeof bytes) || !put(mine, size_t(bytes))) return 1;
  const size_t want = size_t(bytes) * size_t(line.processes);
  for (size_t done = 0; done < want;) {
    const ssize_t k = read(line.fd, static_cast<char *>(all) + done, want - done);
    if (k <= 0) return 2;
    done += size_t(k);
  }
  return 0;
}

// Comm is this process's part of a communicator.
struct Comm {
  Comm(const Setting &s, int64_t watchdog) : line{s.fd, s.processes}, setting(s) {
    for (int32_t r = 0; r < s.ranks; r++) {
      process_of.push_back(r % s.processes);
      devices.push_back(s.devices[size_t(r) % s.devices.size()]);
    }
    mscclsh_comm_options o = {};
    o.devices = devices.data();
    o.ranks = s.ranks;
    o.flag_modulus = 64;
    o.watchdog_ns = watchdog;
    o.process_of = process_of.data();
    o.exchange = exchange;
    o.context = &line;
    o.processes = s.processes;
    o.process = s.process;
    OK(mscclsh_comm_create(&o, &comm, err, sizeof err));
  }
  ~Comm() { OK(mscclsh_comm_destroy(comm, err, sizeof err)); }
  bool local(int32_t rank) const { return process_of[size_t(rank)] == setting.process; }

  Line line;
  const Setting setting;
  std::vector<int32_t> process_of, devices;
  mscclsh_comm *comm = nullptr;
};

// value is what rank r holds in element i.
float value(int32_t r, int64_t i, int seed) {
  return float(1 + (uint64_t(i) * 2654435761u >> 7 ^ uint64_t(r * 5 + seed)) % 2);
}

// Job is a program loaded and prepared, of fp32 sums.
struct Job {
  Job(Comm *comm, Program program, int32_t protocol, int64_t elems, int32_t root)
      : on(comm), p(std::move(program)), protocol(protocol), chunk(elems), root(root) {
    mscclsh_program flat =
        protocol == MSCCLSH_DIRECT ? p.flatten(protocol, 0, 0) : p.flatten(protocol, 4, 240);
    OK(mscclsh_load(on->comm, &flat, &prog, err, sizeof err));
  }
  ~Job() { OK(mscclsh_unload(prog, err, sizeof err)); }

  int32_t prepare() {
    mscclsh_size size = {};
    size.chunk_bytes = 4 * chunk;
    size.regime = 1;
    return mscclsh_prepare(prog, &size, nullptr, err, sizeof err);
  }

  int64_t elems() const { return p.chunks_total * chunk; }

  void fill(int seed) {
    std::vector<float> data(static_cast<size_t>(elems()));
    for (int32_t r = 0; r < on->setting.ranks; r++) {
      if (!on->local(r)) continue;
      OK(mscclsh_fill(prog, r, 1, 0xee, err, sizeof err));
      for (int64_t i = 0; i < elems(); i++) data[size_t(i)] = value(r, i, seed);
      OK(mscclsh_upload(prog, r, 0, 0, data.data(), 4 * elems(), err, sizeof err));
    }
  }

  // check wants the sums, or root's input, in the outputs of this process's ranks.
  void check(int seed, const char *what) {
    const int32_t n = on->setting.ranks;
    std::vector<float> data(static_cast<size_t>(elems()));
    OK(mscclsh_check_guards(prog, err, sizeof err));
    for (int32_t r = 0; r < n; r++) {
      if (!on->local(r)) continue;
      OK(mscclsh_download(prog, r, 1, 0, data.data(), 4 * elems(), err, sizeof err));
      for (int64_t i = 0; i < elems(); i++) {
        float want = root >= 0 ? value(root, i, seed) : 0;
        for (int32_t q = 0; q < n && root < 0; q++) want += value(q, i, seed);
        if (data[size_t(i)] == want) continue;
        EXPECT(false, "%s, protocol %d: rank %d element %lld is %g, want %g", what, protocol, r,
               (long long)i, double(data[size_t(i)]), double(want));
        break;
      }
    }
  }

  Comm *on;
  Program p;
  int32_t protocol;
  int64_t chunk;
  int32_t root;
  mscclsh_prog *prog = nullptr;
};

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
      if (captured) stream.begin_capture();
      for (int k = 0; k < 3; k++)
        OK(mscclsh_enqueue_on(j.prog, device, stream.get(), err, sizeof err));
      if (captured) stream.replay();
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
  } scenarios[] = {{"mixed", mixed}, {"buffers", buffers}, {"streams", streams},
                   {"agree", agree}, {"missing", missing}, {"leave", leave},
                   {"kill", killed}};
  for (auto &c : scenarios) {
    if (s.scenario != c.name) continue;
    c.run(s);
    std::fflush(stdout);
    return failures != 0;
  }
  std::printf("there is no scenario %s\n", s.scenario.c_str());
  return 2;
}
