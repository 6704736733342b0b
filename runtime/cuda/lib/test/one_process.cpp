// One-sided programs whose ranks live in several processes.
#include "one_process.h"

#include "one_programs.h"
#include "process_job.h"

namespace {

// Part is this process's part of a program, loaded and prepared, of int32.
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
    size.dtype = 8;
    OK(mscclsh_prepare(prog, &size, nullptr, err, sizeof err));
  }

  void run(int seed, int32_t launches, const char *what, const Wanted &want) {
    std::vector<int32_t> data(size_t(p.chunks[0] * chunk));
    for (int32_t r = 0; r < p.ranks; r++) {
      if (!comm->local(r)) continue;
      for (size_t i = 0; i < data.size(); i++) data[i] = one_input(r, int64_t(i), seed);
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
        const int32_t w = want(r, int32_t(int64_t(i) / chunk), int64_t(i) % chunk);
        if (data[i] == w) continue;
        EXPECT(false, "%s, seed %d: rank %d element %zu is %d, want %d", what, seed, r, i, data[i],
               w);
        break;
      }
    }
  }

  Comm *comm;
  const OneProgram p;
  int64_t chunk = 0;
  mscclsh_prog *prog = nullptr;
};

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
