// Element types and reductions, with the results of the CPU interpreter: 16-bit
// floats are computed in float32 and rounded to nearest even, FP8 is rounded once from
// float64 and saturates, integers wrap around. min and max return the other operand
// where one is a NaN, and of two zeros the first operand.
#ifndef MSCCLSH_NUMBER_H
#define MSCCLSH_NUMBER_H

#include <type_traits>

#include "shim.h"

namespace mscclsh {

// Numbered like runtime.DType and runtime.ReduceOp.
enum DType : int32_t {
  kFP32,
  kFP64,
  kFP16,
  kBF16,
  kFP8E4M3,
  kFP8E5M2,
  kInt8,
  kUint8,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kDTypes
};
enum Op : int32_t { kSum, kProd, kMin, kMax, kAvg, kOps };

// small_bits rounds a finite x >= 0 to the exponent and mantissa bits of a small float
// with man mantissa bits whose least normal number is 2^min_exp. What rounds beyond
// the largest finite number gives the bits of infinity or more.
MSCCLSH_DEV uint32_t small_bits(double x, int man, int min_exp) {
  uint64_t b = double_to_bits(x);
  if (int(b >> 52) - 1023 < min_exp) {
    // The ulp of this power of two is the least number, so that the addition rounds.
    uint64_t magic = uint64_t(1023 + min_exp - man + 52) << 52;
    return uint32_t(double_to_bits(x + bits_to_double(magic)) - magic);
  }
  int shift = 52 - man;
  b += (uint64_t(1) << (shift - 1)) - 1 + (b >> shift & 1);
  return uint32_t((b >> shift) - (uint64_t(1023 + min_exp - 1) << man));
}

// Each type has its bits as they lie in memory, the type Num it is computed in, and
// the conversions; divide is avg's last step.
template <class T>
struct Plain {
  using Bits = T;
  using Num = T;
  MSCCLSH_DEV static Num widen(Bits b) { return b; }
  MSCCLSH_DEV static Bits round(Num v) { return v; }
};

template <class T>
struct Integer : Plain<T> {
  MSCCLSH_DEV static T divide(T v, int64_t n) {
    if (std::is_same<T, uint64_t>::value) return T(uint64_t(v) / uint64_t(n));
    return T(int64_t(v) / n);
  }
};

struct FP32 : Plain<float> {
  MSCCLSH_DEV static float divide(float v, int64_t n) { return float(double(v) / double(n)); }
};
struct FP64 : Plain<double> {
  MSCCLSH_DEV static double divide(double v, int64_t n) { return v / double(n); }
};

// Half is a 16-bit float; kMan and kMinExp as in small_bits, kInf its infinity.
template <class Self, int kMan, int kMinExp, uint16_t kInf>
struct Half {
  using Bits = uint16_t;
  using Num = float;
  // Through float32 the quotient would be rounded twice.
  MSCCLSH_DEV static Bits divide(Bits b, int64_t n) {
    double x = double(Self::widen(b)) / double(n);
    uint16_t s = b & 0x8000;
    if (x != x) return Bits(s | kInf | 1u << (kMan - 1));
    if (x < 0) x = -x;
    if (x > 1e300) return Bits(s | kInf);
    uint32_t v = small_bits(x, kMan, kMinExp);
    return Bits(s | (v < kInf ? v : kInf));
  }
};

struct FP16 : Half<FP16, 10, -14, 0x7c00> {
  MSCCLSH_DEV static float widen(uint16_t h) {
#if defined(__CUDA_ARCH__)
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
    return f;
#else
    uint32_t m = uint32_t(h & 0x7fff) << 13;
    uint32_t b = float_to_bits(bits_to_float(m) * 0x1p112f);
    if (m >= 0x7c00u << 13) b = m | 0x7f800000;
    return bits_to_float(b | uint32_t(h & 0x8000) << 16);
#endif
  }
  MSCCLSH_DEV static uint16_t round(float f) {
#if defined(__CUDA_ARCH__)
    uint16_t h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
    return h;
#else
    uint32_t b = float_to_bits(f), s = b >> 16 & 0x8000;
    b &= 0x7fffffff;
    if (b > 0x7f800000) return uint16_t(s | 0x7e00);
    if (b >= 0x47800000) return uint16_t(s | 0x7c00);
    if (b < 0x38800000) return uint16_t(s | (float_to_bits(bits_to_float(b) + 0.5f) - 0x3f000000));
    b += 0xfff + (b >> 13 & 1) - (112u << 23);
    return uint16_t(s | b >> 13);
#endif
  }
};

struct BF16 : Half<BF16, 7, -126, 0x7f80> {
  MSCCLSH_DEV static float widen(uint16_t h) { return bits_to_float(uint32_t(h) << 16); }
  MSCCLSH_DEV static uint16_t round(float f) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    uint16_t h;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(f));
    return h;
#else
    uint32_t b = float_to_bits(f);
    if ((b & 0x7fffffff) > 0x7f800000) return uint16_t((b >> 16 & 0x8000) | 0x7fc0);
    return uint16_t((b + 0x7fff + (b >> 16 & 1)) >> 16);
#endif
  }
};

// FP8 of either kind: kInf is whether the largest exponent means infinity and NaNs
// (E5M2), or a single NaN of all ones (E4M3).
template <int kMan, int kMinExp, uint8_t kMax, bool kInf>
struct FP8 {
  using Bits = uint8_t;
  using Num = double;
  MSCCLSH_DEV static double widen(uint8_t v) {
    uint64_t s = uint64_t(v & 0x80) << 56;
    int frac = v & ((1 << kMan) - 1), exp = (v & 0x7f) >> kMan;
    if (!kInf && (v & 0x7f) == 0x7f) return bits_to_double(s | 0x7ff8000000000000);
    if (kInf && exp == 31)
      return bits_to_double(s | (frac ? 0x7ff8000000000000 : 0x7ff0000000000000));
    double least = bits_to_double(uint64_t(1023 + kMinExp - kMan) << 52);
    double x = frac * least;
    if (exp > 0)
      x = bits_to_double(uint64_t(1023 + kMinExp + exp - 1) << 52 | uint64_t(frac) << (52 - kMan));
    return bits_to_double(double_to_bits(x) | s);
  }
  MSCCLSH_DEV static uint8_t round(double x) {
    uint8_t s = uint8_t(double_to_bits(x) >> 56 & 0x80);
    if (x != x) return s | 0x7f;
    double most = widen(kMax);
    x = bits_to_double(double_to_bits(x) & 0x7fffffffffffffff);
    return uint8_t(s | small_bits(x < most ? x : most, kMan, kMinExp));
  }
  MSCCLSH_DEV static uint8_t divide(uint8_t v, int64_t n) { return round(widen(v) / double(n)); }
};
using FP8E4M3 = FP8<3, -6, 0x7e, false>;
using FP8E5M2 = FP8<2, -14, 0x7b, true>;

// Unsigned arithmetic where numbers may overflow.
template <class N>
struct Wide {
  using type = N;
};
template <>
struct Wide<int32_t> {
  using type = uint32_t;
};
template <>
struct Wide<int64_t> {
  using type = uint64_t;
};

// apply is the reduction of two numbers.
template <class N, Op kOp>
MSCCLSH_DEV N apply(N a, N b) {
  using W = typename Wide<N>::type;
  if (kOp == kSum) return N(W(a) + W(b));
  if (kOp == kProd) return N(W(a) * W(b));
  if (kOp == kMin) return b < a || a != a ? b : a;
  return b > a || a != a ? b : a;
}

// combine_apart is combine for FP8, whose arithmetic is long: inlined wherever words are
// combined it would take the compiler most of an hour.
template <class T, Op kOp>
MSCCLSH_COLD uint64_t combine_apart(uint64_t a, uint64_t b) {
  uint64_t v = 0;
  MSCCLSH_ROLLED
  for (int i = 0; i < 64; i += 8) {
    const double x = T::widen(uint8_t(a >> i)), y = T::widen(uint8_t(b >> i));
    v |= uint64_t(T::round(apply<double, kOp>(x, y))) << i;
  }
  return v;
}

// combine reduces two words of 8 bytes, element by element.
template <class T, Op kOp>
MSCCLSH_DEV uint64_t combine(uint64_t a, uint64_t b) {
  if constexpr (sizeof(typename T::Bits) == 1 && std::is_same<typename T::Num, double>::value)
    return combine_apart<T, kOp>(a, b);
  using Bits = typename T::Bits;
  using Num = typename T::Num;
  constexpr int kElems = 8 / sizeof(Bits);
  union Word {
    uint64_t word;
    Bits elems[kElems];
  };
  Word x, y;
  x.word = a;
  y.word = b;
  MSCCLSH_UNROLL
  for (int i = 0; i < kElems; i++)
    x.elems[i] = T::round(apply<Num, kOp>(T::widen(x.elems[i]), T::widen(y.elems[i])));
  return x.word;
}

}  // namespace mscclsh

#endif
