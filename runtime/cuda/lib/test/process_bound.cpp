// Bound calls, windows and aborts among several processes.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <chrono>
#include <memory>

#include "../src/peers_fds.h"
#include "process_job.h"
#include "process_streams.h"

namespace {

// Sized is one size of a program that is bound, with buffers in windows.
struct Sized {
  Sized(Job *job, mscclsh_window *const *windows, const std::vector<void *> &memory, int64_t elems,
        int64_t offset, bool by_window)
      : j(job), elems(elems), offset(offset) {
    size.chunk_bytes = 4 * elems;
    size.regime = 1;
    const Comm &on = *j->on;
    for (int32_t i = 0; i < 2 * on.setting.ranks; i++)
      buffers.push_back(memory[size_t(i)] ? static_cast<char *>(memory[size_t(i)]) + offset
                                          : nullptr);
    in_place = j->p.base_buf[1] == 0;
    for (size_t i = 1; in_place && i < buffers.size(); i += 2) buffers[i] = nullptr;
    mscclsh_binding b = {};
    b.size = &size;
    b.buffers = buffers.data();
    b.windows = by_window ? windows : nullptr;
    b.offset[0] = b.offset[1] = offset;
    std::vector<int32_t> bound;
    for (int32_t r = 0; r < on.setting.ranks; r++) {
      const int32_t device = on.devices[size_t(r)];
      bool done = !on.local(r);
      for (int32_t d : bound) done |= d == device;
      if (done) continue;
      bound.push_back(device);
      b.device = device;
      calls.push_back(nullptr);
      OK(mscclsh_bind(j->prog, &b, &calls.back(), nullptr, err, sizeof err));
    }
  }
  ~Sized() { unbind(); }
  Sized(const Sized &) = delete;
  Sized &operator=(const Sized &) = delete;

  void unbind() {
    for (mscclsh_call *c : calls) OK(mscclsh_unbind(c, err, sizeof err));
    calls.clear();
  }
  void launch() {
    for (mscclsh_call *c : calls) OK(mscclsh_call_on(c, nullptr, err, sizeof err));
  }
  int64_t count() const { return j->p.chunks_total * elems; }
  void *in(int32_t r) const { return buffers[size_t(2 * r)]; }
  void *out(int32_t r) const { return in_place ? in(r) : buffers[size_t(2 * r + 1)]; }

  Job *const j;
  const int64_t elems, offset;
  bool in_place = false;
  mscclsh_size size = {};
  std::vector<void *> buffers;  // [ranks*2]
  std::vector<mscclsh_call *> calls;
};

// run fills the inputs, launches, and compares the outputs of this process's ranks. What
// the copies take must stay until they are done.
void run(Sized &s, int seed, const char *what) {
  Comm &on = *s.j->on;
  const int32_t n = on.setting.ranks;
  std::vector<std::vector<float>> from(static_cast<size_t>(n)), to(static_cast<size_t>(n));
  for (int32_t r = 0; r < n; r++) {
    if (!on.local(r)) continue;
    to[size_t(r)].assign(size_t(s.count()), -1.f);
    for (int64_t i = 0; i < s.count(); i++) from[size_t(r)].push_back(value(r, i, seed));
    OK(mscclsh_copy_on(on.comm, on.devices[size_t(r)], nullptr, s.in(r), from[size_t(r)].data(),
                       4 * s.count(), err, sizeof err));
  }
  s.launch();
  for (int32_t r = 0; r < n; r++)
    if (on.local(r))
      OK(mscclsh_copy_on(on.comm, on.devices[size_t(r)], nullptr, to[size_t(r)].data(), s.out(r),
                         4 * s.count(), err, sizeof err));
  OK(mscclsh_sync(on.comm, err, sizeof err));
  for (int32_t r = 0; r < n; r++) {
    for (int64_t i = 0; on.local(r) && i < s.count(); i++) {
      float want = s.j->root >= 0 ? value(s.j->root, i, seed) : 0;
      for (int32_t q = 0; q < n && s.j->root < 0; q++) want += value(q, i, seed);
      if (to[size_t(r)][size_t(i)] == want) continue;
      EXPECT(false, "%s, protocol %d, %lld elems: rank %d element %lld is %g, want %g", what,
             s.j->protocol, (long long)s.elems, r, (long long)i, double(to[size_t(r)][size_t(i)]),
             double(want));
      break;
    }
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

// open_windows opens the ranks' inputs, memory[2*r], and outputs, memory[2*r+1].
void open_windows(const Comm &comm, const std::vector<void *> &memory, int64_t bytes,
                  mscclsh_window **windows) {
  for (int i = 0; i < 2; i++) {
    std::vector<void *> own;
    for (size_t k = size_t(i); k < memory.size(); k += 2) own.push_back(memory[k]);
    const std::vector<int64_t> sizes(own.size(), bytes);
    OK(mscclsh_window_open(comm.comm, own.data(), sizes.data(), &windows[i], err, sizeof err));
  }
}

// refuse_bound asks for what one process can't tell of, which is refused in all, for Direct
// without windows, and for different things.
void refuse_bound(const Comm &comm, const Job &direct, const std::vector<void *> &memory,
                  int64_t bytes) {
  const int32_t n = comm.setting.ranks;
  std::vector<float> own(size_t(bytes) / 4);
  std::vector<void *> ranks(static_cast<size_t>(n), nullptr);
  const std::vector<int64_t> sizes(size_t(n), bytes);
  for (int32_t r = 0; r < n; r++) ranks[size_t(r)] = r == 1 ? own.data() : memory[size_t(2 * r)];
  mscclsh_window *window = nullptr;
  if (!on_gpu())
    EXPECT(mscclsh_window_open(comm.comm, ranks.data(), sizes.data(), &window, err, sizeof err) ==
                   MSCCLSH_EREFUSED &&
               has("can't be told to other processes") && has("process 1: ") == (self != 1),
           "got %s", err);
  mscclsh_size size = {};
  size.chunk_bytes = 4;
  size.regime = 1;
  mscclsh_binding b = {};
  b.size = &size;
  b.buffers = memory.data();
  b.device = comm.devices[size_t(self)];
  mscclsh_call *call = nullptr;
  EXPECT(mscclsh_bind(direct.prog, &b, &call, nullptr, err, sizeof err) == MSCCLSH_EINVAL &&
             has("needs windows"),
         "got %s", err);
  EXPECT(mscclsh_reserve(comm.comm, self, err, sizeof err) == MSCCLSH_EINVAL &&
             has("was given something else"),
         "got %s", err);
}

}  // namespace

// test_bound binds each program at several sizes, each process for itself; those of Direct
// find their peers in windows, which come and go.
void test_bound(const Setting &s) {
  Comm comm(s, 0);
  const int32_t n = s.ranks, root = n - 1;
  const int64_t most = 300, bytes = 4 * n * most + 64;
  std::vector<void *> memory(size_t(2 * n), nullptr);
  for (int32_t r = 0; r < n; r++)
    for (int32_t b = 0; comm.local(r) && b < 2; b++)
      OK(mscclsh_alloc(comm.comm, r, bytes, &memory[size_t(2 * r + b)], err, sizeof err));
  OK(mscclsh_reserve(comm.comm, 4 * n * most, err, sizeof err));
  std::vector<std::unique_ptr<Job>> jobs;
  for (int32_t protocol = 0; protocol <= MSCCLSH_DIRECT; protocol++) {
    jobs.emplace_back(new Job(&comm, all_pairs(n), protocol, 0, -1));
    jobs.emplace_back(new Job(&comm, chain(n, root), protocol, 0, root));
    jobs.emplace_back(new Job(&comm, split_ring(n), protocol, 0, -1));
  }
  const int before = mapped();
  const bool alone = s.processes == 1;
  for (int round = 0; round < s.rounds / 25 && failures == 0; round++) {
    mscclsh_window *windows[2] = {};
    open_windows(comm, memory, bytes, windows);
    std::vector<std::unique_ptr<Sized>> sized;
    for (auto &j : jobs)
      for (int64_t elems : {int64_t(4), most, int64_t(1 + round)})
        sized.emplace_back(new Sized(j.get(), windows, memory, elems, 4 * ((round + elems) % 16),
                                     j->protocol == MSCCLSH_DIRECT && !(alone && round % 2)));
    for (int k = 0; k < 2; k++)
      for (size_t i = 0; i < sized.size(); i++)
        run(*sized[(i * 5 + size_t(k)) % sized.size()], round + int(i), "bound");
    sized.clear();
    for (mscclsh_window *w : windows) OK(mscclsh_window_close(w, err, sizeof err));
    EXPECT(mapped() == before, "%d files are mapped, before %d", mapped(), before);
  }
  if (!alone) refuse_bound(comm, *jobs.back(), memory, bytes);
  jobs.clear();
  for (int32_t r = 0; r < n; r++)
    for (int32_t i = 0; comm.local(r) && i < 2; i++)
      OK(mscclsh_free(comm.comm, r, memory[size_t(2 * r + i)], err, sizeof err));
}

// test_fds hands out descriptors of files, more than wait in a box at once: each process
// finds in them what the others wrote.
void test_fds(const Setting &s) {
  using mscclsh::Fd;
  using mscclsh::FdPost;
  constexpr int32_t kEach = 400;
  Line line{s.fd, s.processes};
  std::vector<int32_t> process_of;
  for (int32_t r = 0; r < s.ranks; r++) process_of.push_back(r % s.processes);
  mscclsh_comm_options o = {};
  o.ranks = s.ranks;
  o.process_of = process_of.data();
  o.exchange = exchange;
  o.context = &line;
  o.processes = s.processes;
  o.process = s.process;
  mscclsh::Peers peers(o);
  for (int round = 0; round < 3; round++) {
    FdPost::Fds mine;
    std::vector<int32_t> want;
    for (int32_t i = 0; i < s.processes * kEach; i++) {
      const bool some = (i + round) % 3 != 0 || round == 2;  // and once all of one process alone
      if (!some || (round == 1 && i % s.processes != 0)) continue;
      if (i % s.processes != s.process) {
        want.push_back(i);
        continue;
      }
      Fd fd(memfd_create("test", MFD_CLOEXEC));
      EXPECT(fd.get() >= 0 && write(fd.get(), &i, sizeof i) == sizeof i, "no file %d", i);
      mine.emplace(i, std::move(fd));
    }
    const FdPost::Fds got = FdPost::swap(&peers, mine, want);
    EXPECT(got.size() == want.size(), "%zu files, want %zu", got.size(), want.size());
    for (const auto &g : got) {
      int32_t i = -1;
      EXPECT(pread(g.second.get(), &i, sizeof i, 0) == sizeof i && i == g.first, "file %d is %d",
             g.first, i);
    }
  }
}

// test_abort has process 1 end what process 0 waits for.
void test_abort(const Setting &s) {
  Comm comm(s, int64_t(300) * 1000000000);
  Program p(2);
  p.chunks_total = 1;
  p.chunks[1] = 1;
  mscclsh_step &step = p.step(0, p.block(0), MSCCLSH_RECV);
  step.recv_peer = 1;
  step.dst_buf = 1;
  p.step(1, p.block(1), MSCCLSH_NOP);
  Job j(&comm, std::move(p), MSCCLSH_LL, 9, -1);
  OK(j.prepare());
  OK(mscclsh_poll(comm.comm, err, sizeof err));
  OK(mscclsh_enqueue(j.prog, 1, err, sizeof err));
  const auto begin = std::chrono::steady_clock::now();
  if (s.process == 1) {
    usleep(100000);
    OK(mscclsh_abort(comm.comm, err, sizeof err));
  }
  EXPECT(mscclsh_sync(comm.comm, err, sizeof err) == MSCCLSH_EDEAD && has("aborted"), "got %s",
         err);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT(took.count() < 60, "it took %.0f s", took.count());
  EXPECT(mscclsh_poll(comm.comm, err, sizeof err) == MSCCLSH_EDEAD && has("aborted"), "got %s",
         err);
  EXPECT(mscclsh_enqueue(j.prog, 1, err, sizeof err) == MSCCLSH_EDEAD, "got %s", err);
}
