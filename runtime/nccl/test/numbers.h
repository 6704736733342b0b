// Numbers of NCCL's data types, decoded to double and encoded again: exact for the small
// numbers that the tests use, rounded to even otherwise. It shares no code with the
// kernels, so that their results can be judged by it.
#ifndef MSCCLSH_TEST_NUMBERS_H
#define MSCCLSH_TEST_NUMBERS_H

#include <nccl.h>

#include <cmath>
#include <cstdint>
#include <cstring>

struct NumberFormat {
  int bytes;
  int exponent, mantissa;  // bits; 0, 0 of integers
  bool is_signed;
};

// In the order of ncclDataType_t.
constexpr NumberFormat kFormats[12] = {{1, 0, 0, true},  {1, 0, 0, false}, {4, 0, 0, true},
                                       {4, 0, 0, false}, {8, 0, 0, true},  {8, 0, 0, false},
                                       {2, 5, 10, true}, {4, 8, 23, true}, {8, 11, 52, true},
                                       {2, 8, 7, true},  {1, 4, 3, true},  {1, 5, 2, true}};

inline const NumberFormat &format_of(ncclDataType_t type) { return kFormats[int(type)]; }

inline double decode(ncclDataType_t type, const void *at) {
  const NumberFormat &f = format_of(type);
  uint64_t bits = 0;
  std::memcpy(&bits, at, size_t(f.bytes));
  if (f.exponent == 0) {
    const int shift = 64 - 8 * f.bytes;
    return f.is_signed ? double(int64_t(bits << shift) >> shift) : double(bits);
  }
  const int e = int(bits >> f.mantissa & ((uint64_t(1) << f.exponent) - 1));
  const double fraction = double(bits & ((uint64_t(1) << f.mantissa) - 1));
  const int bias = (1 << (f.exponent - 1)) - 1;
  const double v = e == 0 ? std::ldexp(fraction, 1 - bias - f.mantissa)
                          : std::ldexp(std::ldexp(fraction, -f.mantissa) + 1, e - bias);
  return bits >> (8 * f.bytes - 1) & 1 ? -v : v;
}

inline void encode(ncclDataType_t type, double v, void *at) {
  const NumberFormat &f = format_of(type);
  uint64_t bits = 0;
  if (f.exponent == 0) {
    bits = v < 0 ? uint64_t(int64_t(v)) : uint64_t(v);
  } else if (v != 0) {
    const int bias = (1 << (f.exponent - 1)) - 1;
    int e = 0;
    std::frexp(v, &e);  // |v| in [2^(e-1), 2^e)
    e = e - 1 < 1 - bias ? 1 - bias : e - 1;
    const double units = std::nearbyint(std::ldexp(std::fabs(v), f.mantissa - e));
    // A carry into the exponent comes out right by itself; so does a denormal's.
    bits = uint64_t(units) + (uint64_t(e + bias - 1) << f.mantissa);
    if (v < 0) bits |= uint64_t(1) << (8 * f.bytes - 1);
  }
  std::memcpy(at, &bits, size_t(f.bytes));
}

// combine is one step of a reduction, of sums for avg.
inline double combine(ncclRedOp_t op, double a, double b) {
  switch (op) {
    case ncclProd:
      return a * b;
    case ncclMax:
      return a > b ? a : b;
    case ncclMin:
      return a < b ? a : b;
    default:
      return a + b;
  }
}

// finish is what avg makes of a sum: integers are cut off.
inline double finish(ncclRedOp_t op, ncclDataType_t type, double v, int ranks) {
  if (op != ncclAvg) return v;
  return format_of(type).exponent == 0 ? std::trunc(v / ranks) : v / ranks;
}

#endif
