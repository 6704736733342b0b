// What the tests of check share: numbers of all types, communicators and programs on them.
#ifndef MSCCLSH_TEST_JOB_H
#define MSCCLSH_TEST_JOB_H

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "programs.h"

inline int failures = 0;
inline char err[1024];

#define EXPECT(cond, ...)                         \
  do {                                            \
    if (!(cond)) {                                \
      failures++;                                 \
      std::printf("%s:%d: ", __FILE__, __LINE__); \
      std::printf(__VA_ARGS__);                   \
      std::printf("\n");                          \
    }                                             \
  } while (0)
#define OK(call) EXPECT((call) == MSCCLSH_OK, "%s: %s", #call, err)

// Formats of the data types, for an encoding of our own: exponent and mantissa bits;
// none of integers.
struct Format {
  int bytes, exp, man;
};
constexpr Format kFormats[12] = {{4, 8, 23}, {8, 11, 52}, {2, 5, 10}, {2, 8, 7},
                                 {1, 4, 3},  {1, 5, 2},   {1, 0, 0},  {1, 0, 0},
                                 {4, 0, 0},  {4, 0, 0},   {8, 0, 0},  {8, 0, 0}};

// encode writes a positive number that the type holds exactly; decode reads it.
inline uint64_t encode(const Format &f, double v) {
  if (f.exp == 0) return uint64_t(v);
  int e = 0;
  double m = std::frexp(v, &e);  // in [0.5, 1)
  return uint64_t(e - 1 + (1 << (f.exp - 1)) - 1) << f.man | uint64_t(std::ldexp(2 * m - 1, f.man));
}
inline double decode(const Format &f, uint64_t bits) {
  if (f.exp == 0) return double(bits);
  int e = int(bits >> f.man & ((1u << f.exp) - 1));
  double frac = double(bits & ((uint64_t(1) << f.man) - 1));
  return std::ldexp(std::ldexp(frac, -f.man) + 1, e - (1 << (f.exp - 1)) + 1);
}

struct Case {
  int32_t ranks, devices, protocol, slots;
  int64_t slot_bytes, chunk_elems;
  int32_t dtype, op, threads, misalign_elems, modulus;
};

// value is what rank r holds in element i: 1 or 2, so that every result is exact in
// every type.
inline int value(int32_t r, int64_t i, int seed) {
  return 1 + int((uint64_t(i) * 2654435761u >> 7 ^ uint64_t(r * 5 + seed)) % 2);
}

inline double reduced(int32_t ranks, int64_t i, int seed, int32_t op, bool integer) {
  double v = value(0, i, seed);
  for (int32_t r = 1; r < ranks; r++) {
    double w = value(r, i, seed);
    v = op == 1 ? v * w : op == 2 ? std::fmin(v, w) : op == 3 ? std::fmax(v, w) : v + w;
  }
  if (op == 4) v = integer ? std::floor(v / ranks) : v / ranks;
  return v;
}

struct Comm {
  Comm(int32_t ranks, int32_t devices, int32_t modulus, int64_t watchdog) {
    std::vector<int32_t> of;
    for (int32_t r = 0; r < ranks; r++) of.push_back(r * devices / ranks);
    mscclsh_comm_options o = {};
    o.devices = of.data();
    o.ranks = ranks;
    o.flag_modulus = modulus;
    o.watchdog_ns = watchdog;
    OK(mscclsh_comm_create(&o, &comm, err, sizeof err));
  }
  ~Comm() { OK(mscclsh_comm_destroy(comm, err, sizeof err)); }
  mscclsh_comm *comm = nullptr;
};

// Job is a program loaded and prepared on a communicator.
struct Job {
  Job(Comm *on, Program &program, const Case &c, int32_t regime) : p(program), c(c) {
    mscclsh_program flat = p.flatten(c.protocol, c.slots, c.slot_bytes);
    OK(mscclsh_load(on->comm, &flat, &prog, err, sizeof err));
    prepare(c.chunk_elems, regime);
  }
  ~Job() { OK(mscclsh_unload(prog, err, sizeof err)); }

  void prepare(int64_t chunk_elems, int32_t regime) {
    c.chunk_elems = chunk_elems;
    mscclsh_size size = {};
    size.chunk_bytes = c.chunk_elems * kFormats[c.dtype].bytes;
    size.regime = regime;
    size.dtype = c.dtype;
    size.op = c.op;
    size.threads = c.threads;
    size.misalign = c.misalign_elems * kFormats[c.dtype].bytes;
    OK(mscclsh_prepare(prog, &size, &info, err, sizeof err));
  }

  int64_t elems() const { return p.chunks_total * c.chunk_elems; }

  void fill(int seed) {
    const Format &f = kFormats[c.dtype];
    std::vector<unsigned char> data(size_t(elems() * f.bytes));
    for (int32_t r = 0; r < c.ranks; r++) {
      OK(mscclsh_fill(prog, r, 1, 0xee, err, sizeof err));
      for (int64_t i = 0; i < elems(); i++) {
        uint64_t bits = encode(f, value(r, i, seed));
        std::memcpy(&data[size_t(i * f.bytes)], &bits, size_t(f.bytes));
      }
      OK(mscclsh_upload(prog, r, 0, 0, data.data(), int64_t(data.size()), err, sizeof err));
    }
  }

  // check compares all outputs with the reduction, or with root's input.
  void check(int seed, int32_t root, const char *what) {
    const Format &f = kFormats[c.dtype];
    std::vector<unsigned char> data(size_t(elems() * f.bytes));
    OK(mscclsh_check_guards(prog, err, sizeof err));
    for (int32_t r = 0; r < c.ranks; r++) {
      OK(mscclsh_download(prog, r, 1, 0, data.data(), int64_t(data.size()), err, sizeof err));
      for (int64_t i = 0; i < elems(); i++) {
        uint64_t bits = 0;
        std::memcpy(&bits, &data[size_t(i * f.bytes)], size_t(f.bytes));
        double want =
            root >= 0 ? value(root, i, seed) : reduced(c.ranks, i, seed, c.op, f.exp == 0);
        if (decode(f, bits) == want) continue;
        EXPECT(false,
               "%s: ranks %d devices %d protocol %d slots %d x %lld, %lld elems a chunk, dtype "
               "%d op %d threads %d misaligned %d: rank %d element %lld is %g, want %g",
               what, c.ranks, c.devices, c.protocol, c.slots, (long long)c.slot_bytes,
               (long long)c.chunk_elems, c.dtype, c.op, c.threads, c.misalign_elems, r,
               (long long)i, decode(f, bits), want);
        return;
      }
    }
  }

  void run(int32_t launches) {
    double ns = 0;
    OK(mscclsh_run(prog, launches, &ns, err, sizeof err));
    EXPECT(ns > 0, "a run takes time");
  }

  Program &p;
  Case c;
  mscclsh_prog *prog = nullptr;
  mscclsh_prepared info = {};
};

// test_quick, in quick.cpp, is about kernels for short programs.
void test_quick();

// test_bound, in bound.cpp, is about calls bound to a size and buffers of the caller's.
void test_bound();

#endif
