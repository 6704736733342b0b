// One-sided programs whose ranks live in several processes.
#include "one_process.h"

#include "one_programs.h"
#include "process_job.h"

namespace {

// Part is this process's part of a program, loaded and prepared, of fp32, which holds all sums
// exactly and is in every build.
struct Part {
  Part(Comm *on, const OneProgram &program, int64_t elems) : comm(on), p(program) {
    const mscclsh_one_program flat = p.flatten();
    OK(mscclsh_one_load(comm->comm, &flat, &prog, err, sizeof err));
    prepare(elems);
  }
  ~Part() { OK(mscclsh_unload(prog, err, sizeof err)); }

  void prepare(int64_t elems) {
    chunk = elems;
    mscclsh_size size = {};
    size.chunk_bytes = 4 * chunk;
    size.regime = 1;
    size.dtype = 0;
    OK(mscclsh_prepare(prog, &size, nullptr, err, sizeof err));
  }

  void run(int seed, int32_t launches, const char *what, const Wanted &want) {
    std::vector<float> data(size_t(p.chunks[0] * chunk));
    for (int32_t r = 0; r < p.ranks; r++) {
      if (!comm->local(r)) continue;
      for (size_t i = 0; i < data.size(); i++) data[i] = float(one_input(r, int64_t(i), seed));
      OK(mscclsh_upload(prog, r, kIn, 0, data.data(), int64_t(4 * data.size()), err, sizeof err));
    }
    OK(mscclsh_enqueue(prog, launches, err, sizeof err));
    OK(mscclsh_sync(comm->comm, err, sizeof err));
    OK(mscclsh_check_guards(prog, err, sizeof err));
    data.resize(size_t(p.chunks[1] * chunk));
    for (int32_t r = 0; r < p.ranks; r++) {
      if (!comm->local(r)) continue;
      OK(mscclsh_download(prog, r, kOut, 0, data.data(), int64_t(4 * data.size()), err,
                          sizeof err));
      for (size_t i = 0; i < data.size(); i++) {
        const float w = float(want(r, int32_t(int64_t(i) / chunk), int64_t(i) % chunk));
        if (data[i] == w) continue;
        EXPECT(false, "%s, seed %d: rank %d element %zu is %g, want %g", what, seed, r, i,
               double(data[i]), double(w));
        break;
      }
    }
  }

  Comm *comm;
  const OneProgram p;
  int64_t chunk = 0;
  mscclsh_prog *prog = nullptr;
};

// Calls are a program's bound calls of several sizes, with memory that any process may open:
// by windows where peers touch it.
struct Calls {
  Calls(Comm *on, const OneProgram &program, bool by_windows, int64_t most)
      : comm(on), p(program), most(most), memory(size_t(2 * program.ranks), nullptr) {
    const mscclsh_one_program flat = p.flatten();
    OK(mscclsh_one_load(comm->comm, &flat, &prog, err, sizeof err));
    OK(mscclsh_one_reserve(prog, 4 * most, err, sizeof err));
    std::vector<void *> own[2];
    std::vector<int64_t> bytes[2];
    for (int32_t r = 0; r < p.ranks; r++)
      for (int32_t b = 0; b < 2; b++) {
        void *&at = memory[size_t(2 * r + b)];
        bytes[b].push_back(4 * most * p.chunks[size_t(b)]);
        if (comm->local(r)) OK(mscclsh_alloc(comm->comm, r, bytes[b].back(), &at, err, sizeof err));
        own[b].push_back(at);
      }
    for (int32_t b = 0; by_windows && b < 2; b++)
      OK(mscclsh_window_open(comm->comm, own[b].data(), bytes[b].data(), &windows[b], err,
                             sizeof err));
  }
  ~Calls() {
    for (mscclsh_call *c : bound) OK(mscclsh_unbind(c, err, sizeof err));
    OK(mscclsh_unload(prog, err, sizeof err));
    for (mscclsh_window *w : windows) OK(mscclsh_window_close(w, err, sizeof err));
    for (int32_t r = 0; r < p.ranks; r++)
      for (int32_t b = 0; comm->local(r) && b < 2; b++)
        OK(mscclsh_free(comm->comm, r, memory[size_t(2 * r + b)], err, sizeof err));
  }

  // bind returns the number of the first call of a size; one follows for each device here.
  size_t bind(int64_t elems) {
    mscclsh_size size = {};
    size.chunk_bytes = 4 * elems;
    size.regime = 1;
    size.dtype = 0;  // fp32, which holds all sums exactly
    mscclsh_binding b = {};
    b.size = &size;
    b.buffers = memory.data();
    b.windows = windows[0] != nullptr ? windows : nullptr;
    const size_t first = bound.size();
    std::vector<int32_t> done;
    for (int32_t r = 0; r < p.ranks; r++) {
      b.device = comm->devices[size_t(r)];
      bool again = !comm->local(r);
      for (int32_t d : done) again |= d == b.device;
      if (again) continue;
      done.push_back(b.device);
      bound.push_back(nullptr);
      OK(mscclsh_bind(prog, &b, &bound.back(), nullptr, err, sizeof err));
    }
    return first;
  }

  // run launches sizes in turn without waiting, and compares what the last one has made. What
  // the copies take stays until they are done.
  void run(int seed, const std::vector<int64_t> &sizes, const char *what, const Wanted &want) {
    const int64_t elems = sizes.back();
    std::vector<std::vector<float>> from, to;
    for (int32_t r = 0; r < p.ranks; r++) {
      from.emplace_back(size_t(p.chunks[0] * most));
      to.emplace_back(size_t(p.chunks[1] * elems));
      if (!comm->local(r)) continue;
      for (size_t i = 0; i < from.back().size(); i++)
        from.back()[i] = float(one_input(r, int64_t(i), seed));
      copy(r, memory[size_t(2 * r)], from.back().data(), from.back().size());
    }
    for (const int64_t n : sizes) {
      const size_t first = bind(n);
      for (size_t i = first; i < bound.size(); i++)
        OK(mscclsh_call_on(bound[i], nullptr, err, sizeof err));
    }
    // A copy to memory that is not pinned keeps the driver's lock until it comes to be made, and
    // a port's copies, for which launches wait, would not be begun meanwhile.
    OK(mscclsh_sync(comm->comm, err, sizeof err));
    for (int32_t r = 0; r < p.ranks; r++)
      if (comm->local(r))
        copy(r, to[size_t(r)].data(), memory[size_t(2 * r + 1)], to[size_t(r)].size());
    OK(mscclsh_sync(comm->comm, err, sizeof err));
    for (int32_t r = 0; r < p.ranks; r++)
      for (size_t i = 0; comm->local(r) && i < to[size_t(r)].size(); i++) {
        const float w = float(want(r, int32_t(int64_t(i) / elems), int64_t(i) % elems));
        if (to[size_t(r)][i] == w) continue;
        EXPECT(false, "%s, seed %d, %lld elems: rank %d element %zu is %g, want %g", what, seed,
               (long long)elems, r, i, double(to[size_t(r)][i]), double(w));
        break;
      }
  }
  void copy(int32_t r, void *to, const void *from, size_t n) {
    OK(mscclsh_copy_on(comm->comm, comm->devices[size_t(r)], nullptr, to, from, int64_t(4 * n), err,
                       sizeof err));
  }

  Comm *comm;
  const OneProgram p;
  const int64_t most;
  std::vector<void *> memory;  // [ranks*2]
  mscclsh_window *windows[2] = {};
  mscclsh_prog *prog = nullptr;
  std::vector<mscclsh_call *> bound;
};

// call_in_turn has launches of several sizes follow each other, of puts and ports by windows and
// of packets without. Flags come round every 64 launches: packets, of several sizes, make fewer.
void call_in_turn(Comm *comm) {
  const int32_t n = comm->setting.ranks;
  Calls memory(comm, gather_all(n, false), true, 256), ports(comm, gather_all(n, true), true, 256);
  Calls packets(comm, reduce_all(n), false, 256);
  for (int k = 0; k < 20; k++) {
    memory.run(k, {4, 256, 20 + 4 * (k % 8)}, "bound memory", gather_of(k));
    if (k < 15) packets.run(k, {256, 8, 64}, "bound packets", sum_of(n, k));
    ports.run(k, {64, 12, 256, 4}, "bound ports", gather_of(k));
  }
  mscclsh_size size = {};
  size.chunk_bytes = 16;
  size.regime = 1;
  mscclsh_binding b = {};
  b.size = &size;
  b.buffers = memory.memory.data();
  for (int32_t r = 0; r < n; r++)
    if (comm->local(r)) b.device = comm->devices[size_t(r)];
  mscclsh_call *call = nullptr;
  EXPECT(mscclsh_bind(memory.prog, &b, &call, nullptr, err, sizeof err) == MSCCLSH_EINVAL &&
             has("needs windows"),
         "got %s", err);
}

}  // namespace

// Puts, ports and packets in turn, launches in a row, sizes that change.
void test_onesided(const Setting &s) {
  Comm comm(s, 0);
  const int32_t n = s.ranks;
  Part memory(&comm, gather_all(n, false), 64), ports(&comm, gather_all(n, true), 64);
  Part packets(&comm, reduce_all(n), 64);
  for (int k = 0; k < 20; k++) {
    if (k % 8 == 7)
      for (Part *p : {&memory, &ports, &packets}) p->prepare(4 << k % 5);
    memory.run(k, 1 + k % 3, "memory", gather_of(k));
    ports.run(k, 1 + k % 2, "ports", gather_of(k));
    packets.run(k, 1 + k % 4, "packets", sum_of(n, k));
  }
}

void test_onecalls(const Setting &s) {
  Comm comm(s, 0);
  call_in_turn(&comm);
}
