// What the scenarios of processes share: a communicator's part and a program on it.
#ifndef MSCCLSH_TEST_PROCESS_JOB_H
#define MSCCLSH_TEST_PROCESS_JOB_H

#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <utility>

#include "process.h"
#include "programs.h"

inline int failures = 0;
inline char err[1024];
inline int32_t self = 0;

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

inline bool has(const char *part) { return std::strstr(err, part) != nullptr; }

// exchange sends what this process brings to the parent, which sends back all.
struct Line {
  int fd;
  int32_t processes;
};

inline int32_t exchange(void *context, const void *mine, void *all, int64_t bytes) {
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
inline float value(int32_t r, int64_t i, int seed) {
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

// Scenarios of process_bound.cpp and process_order.cpp.
void test_bound(const Setting &s);
void test_fds(const Setting &s);
void test_abort(const Setting &s);
void test_order(const Setting &s);

#endif
