// Inputs made on a device, and results compared there: what the kernels do that
// generate and verify launch. It shares number.h with the interpreter and nothing
// else, so that neither can hide a mistake of the other.
//
// An element of an input is a function of (seed, rank, element), element counting from
// the start of the rank's input, padding included. Elements are such that a reduction
// is exact in whatever order it is made, so that bits can be compared: 8 to 64 random
// bits for integers, which wrap around (odd ones for products); for floats powers of
// two from 1/2 to 2 of either sign for products, and else integers of at most most in
// size. Where the type has no room for all contributions, of rotate ranks in a row only
// dense ones contribute, which ones changes from element to element; the others are 0
// or 1.
#ifndef MSCCLSH_VERIFY_H
#define MSCCLSH_VERIFY_H

#include "number.h"

#if defined(__CUDACC__)
#define MSCCLSH_BOTH __host__ __device__ inline
#else
#define MSCCLSH_BOTH inline
#endif

namespace mscclsh {

// DataPart is one contribution to a run of results.
struct DataPart {
  uint64_t hash;    // mix(spread(rank))
  int64_t element;  // of the rank's input, for the run's first result
  int32_t rank, times;
};

// DataRun is a run of elements, with the parts they are made of. In a run without
// parts, every byte is kJunk.
struct DataRun {
  unsigned char *at;
  int64_t elems;
  int64_t before;  // elements of earlier runs
  int64_t first_part;
  int32_t n_parts;
  int32_t divisor;  // of avg; 1 without
};

constexpr uint64_t kJunk = 0xcbcbcbcbcbcbcbcb;

// DataRecord is what comparisons found on a device.
struct DataRecord {
  uint64_t wrong;
  uint64_t first;  // call << kCallShift | element, counted over all runs
  uint64_t want, have, seed;
};

constexpr int kCallShift = 44;
constexpr uint64_t kNoneWrong = ~uint64_t(0);

// DataArgs is the kernels' parameter.
struct DataArgs {
  const DataRun *runs;
  const DataPart *parts;
  DataRecord *record;
  int64_t n_runs;
  uint64_t seed;  // as the caller gave it
  uint64_t call;
  int64_t most;  // see above
  int32_t dense, rotate;
  int32_t op;
  int32_t explain;  // 1: only fill in the record's want and have
};

// mix is the finalizer of MurmurHash3 with the constants of SplitMix64.
MSCCLSH_BOTH uint64_t mix(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

// spread sets neighboring numbers (ranks, seeds, elements) far apart.
MSCCLSH_BOTH uint64_t spread(uint64_t n) { return (n + 1) * 0x9e3779b97f4a7c15; }

// Numbers of a type: what elements are before they are rounded to it, and how they
// are reduced. Floats are exact in double (see above), integers wrap.
template <class T, bool kInteger = std::is_integral<typename T::Num>::value>
struct Sample {
  using Num = double;
  MSCCLSH_DEV static Num make(uint64_t h, const DataArgs &a) {
    if (a.op == kProd) {
      const uint32_t exp = uint32_t((h >> 32) * 3 >> 32);
      const double v = exp == 0 ? 0.5 : double(exp);
      return h & 1 ? -v : v;
    }
    return double(int64_t((h >> 32) * uint64_t(2 * a.most + 1) >> 32) - a.most);
  }
  MSCCLSH_DEV static Num rest(int32_t op) { return op == kProd ? 1 : 0; }
  MSCCLSH_DEV static typename T::Bits bits(Num v) { return T::round(typename T::Num(v)); }
  MSCCLSH_DEV static Num repeat(Num v, int32_t n) { return v * n; }
};

template <class T>
struct Sample<T, true> {
  using Num = typename T::Num;
  using W = typename Wide<Num>::type;
  MSCCLSH_DEV static Num make(uint64_t h, const DataArgs &a) {
    return Num(a.op == kProd ? h | 1 : h);
  }
  MSCCLSH_DEV static Num rest(int32_t op) { return op == kProd ? 1 : 0; }
  MSCCLSH_DEV static typename T::Bits bits(Num v) { return T::round(v); }
  MSCCLSH_DEV static Num repeat(Num v, int32_t n) { return Num(W(v) * W(n)); }
};

// element is one element of a rank's input.
template <class T>
MSCCLSH_DEV typename Sample<T>::Num element(const DataPart &p, int64_t i, const DataArgs &a) {
  const uint64_t e = uint64_t(p.element + i);
  if (a.dense < a.rotate && (uint64_t(p.rank) + e) % uint64_t(a.rotate) >= uint64_t(a.dense))
    return Sample<T>::rest(a.op);
  return Sample<T>::make(mix(spread(e) ^ p.hash ^ mix(a.seed)), a);
}

template <class N>
MSCCLSH_DEV N reduce(N x, N y, int32_t op) {
  switch (op) {
    case kProd:
      return apply<N, kProd>(x, y);
    case kMin:
      return y < x ? y : x;
    case kMax:
      return y > x ? y : x;
    default:
      return apply<N, kSum>(x, y);
  }
}

// Raw is an unsigned number of a type's size.
template <int kBytes>
struct RawOf;
template <>
struct RawOf<1> {
  using type = uint8_t;
};
template <>
struct RawOf<2> {
  using type = uint16_t;
};
template <>
struct RawOf<4> {
  using type = uint32_t;
};
template <>
struct RawOf<8> {
  using type = uint64_t;
};
template <class T>
using Raw = typename RawOf<sizeof(typename T::Bits)>::type;

template <class T>
MSCCLSH_DEV Raw<T> raw(typename T::Bits b) {
  union {
    typename T::Bits bits;
    Raw<T> raw;
  } u;
  u.bits = b;
  return u.raw;
}

// want is what element i of a run must be.
template <class T>
MSCCLSH_DEV Raw<T> want(const DataRun &run, int64_t i, const DataArgs &a) {
  using Num = typename Sample<T>::Num;
  if (run.n_parts == 0) return Raw<T>(kJunk);
  Num v = Num();
  for (int32_t k = 0; k < run.n_parts; k++) {
    const DataPart p = a.parts[run.first_part + k];
    const Num once = element<T>(p, i, a);
    Num x = once;
    if (a.op == kSum || a.op == kAvg) x = Sample<T>::repeat(once, p.times);
    for (int32_t n = 1; a.op == kProd && n < p.times; n++) x = reduce(x, once, kProd);
    v = k == 0 ? x : reduce(v, x, a.op);
  }
  const typename T::Bits b = Sample<T>::bits(v);
  return raw<T>(run.divisor > 1 ? T::divide(b, run.divisor) : b);
}

// generate_runs writes all runs, thread id of so many.
template <class T>
MSCCLSH_DEV void generate_runs(const DataArgs &a, int64_t id, int64_t threads) {
  for (int64_t r = 0; r < a.n_runs; r++) {
    const DataRun run = a.runs[r];
    Raw<T> *at = reinterpret_cast<Raw<T> *>(run.at);
    for (int64_t i = id; i < run.elems; i += threads) at[i] = want<T>(run, i, a);
  }
}

// note adds a thread's count of wrong elements to the record.
MSCCLSH_DEV void note(DataRecord *record, uint64_t wrong, uint64_t first) {
#if defined(__CUDACC__)
  using Word = unsigned long long;
  atomicAdd(reinterpret_cast<Word *>(&record->wrong), Word(wrong));
  atomicMin(reinterpret_cast<Word *>(&record->first), Word(first));
#else
  record->wrong += wrong;
  if (first < record->first) record->first = first;
#endif
}

// explain fills in the record's first wrong element if this call found it.
template <class T>
MSCCLSH_DEV void explain(const DataArgs &a) {
  const uint64_t first = a.record->first;
  if (first == kNoneWrong || first >> kCallShift != a.call) return;
  const int64_t e = int64_t(first & ((uint64_t(1) << kCallShift) - 1));
  int64_t r = 0;
  while (r + 1 < a.n_runs && a.runs[r + 1].before <= e) r++;
  const DataRun run = a.runs[r];
  a.record->want = want<T>(run, e - run.before, a);
  a.record->have = reinterpret_cast<const Raw<T> *>(run.at)[e - run.before];
  a.record->seed = a.seed;
}

// verify_runs compares all runs, thread id of so many.
template <class T>
MSCCLSH_DEV void verify_runs(const DataArgs &a, int64_t id, int64_t threads) {
  if (a.explain) {
    if (id == 0) explain<T>(a);
    return;
  }
  uint64_t wrong = 0, first = kNoneWrong;
  for (int64_t r = 0; r < a.n_runs; r++) {
    const DataRun run = a.runs[r];
    const Raw<T> *at = reinterpret_cast<const Raw<T> *>(run.at);
    for (int64_t i = id; i < run.elems; i += threads) {
      if (at[i] == want<T>(run, i, a)) continue;
      if (wrong++ == 0) first = a.call << kCallShift | uint64_t(run.before + i);
    }
  }
  if (wrong) note(a.record, wrong, first);
}

#if defined(MSCCLSH_HOST)
using DataKernel = void (*)(const DataArgs &);
#else
using DataKernel = void (*)(DataArgs);
#endif

// DataKernels are those of one data type; null where the build has none.
struct DataKernels {
  DataKernel generate, verify;
};

DataKernels data_kernels_of(DType d);

}  // namespace mscclsh

#endif
