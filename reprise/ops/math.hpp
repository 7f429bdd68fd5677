// Elementary functions whose bits are the same on every processor and on the GPU.
//
// libm and libdevice differ from one another and from version to version, and a compiler that may
// contract `a * b + c` differs from itself. So the ops use these: a fixed order of IEEE operations,
// each rounded on its own. `exp` takes one float or a vector of 4, 8 or 16 (GCC's extension); a
// lane has the bits that the scalar has; `log` and `sincos` take one. No tables, no state, no
// errors.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "reprise/base/portable.hpp"

// Passing a vector to a real function depends on the target of the caller; here everything is
// inlined always, so the warning of it is noise: off for the rest of the file that includes this,
// since it is given where a function is used.
#if defined(__GNUC__) && !defined(__CUDACC__)
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

namespace reprise::REPRISE_BODIES::math {

#if !defined(__CUDACC__)
using f32x4 = float __attribute__((vector_size(16)));
using f32x8 = float __attribute__((vector_size(32)));
using f32x16 = float __attribute__((vector_size(64)));
#endif

namespace detail {

template <class V>
struct bits_of;
template <>
struct bits_of<float> {
  using type = std::uint32_t;
};
#if !defined(__CUDACC__)
template <>
struct bits_of<f32x4> {
  using type = std::uint32_t __attribute__((vector_size(16)));
};
template <>
struct bits_of<f32x8> {
  using type = std::uint32_t __attribute__((vector_size(32)));
};
template <>
struct bits_of<f32x16> {
  using type = std::uint32_t __attribute__((vector_size(64)));
};
#endif

}  // namespace detail

// One IEEE operation, rounded to nearest, never fused with its neighbour: nvcc contracts unless it
// is told so by name; on the CPU the build says -ffp-contract=off. V is float, double (not div) or
// a vector.
template <class V>
[[gnu::always_inline]] REPRISE_HD inline V add(const V& a, const V& b) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(V) == sizeof(float)) {
    return __fadd_rn(a, b);
  } else {
    return __dadd_rn(a, b);
  }
#else
  return a + b;
#endif
}

template <class V>
[[gnu::always_inline]] REPRISE_HD inline V sub(const V& a, const V& b) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(V) == sizeof(float)) {
    return __fsub_rn(a, b);
  } else {
    return __dsub_rn(a, b);
  }
#else
  return a - b;
#endif
}

template <class V>
[[gnu::always_inline]] REPRISE_HD inline V mul(const V& a, const V& b) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(V) == sizeof(float)) {
    return __fmul_rn(a, b);
  } else {
    return __dmul_rn(a, b);
  }
#else
  return a * b;
#endif
}

template <class V>
[[gnu::always_inline]] REPRISE_HD inline V div(const V& a, const V& b) {
#if defined(__CUDA_ARCH__)
  static_assert(sizeof(V) == sizeof(float));
  return __fdiv_rn(a, b);
#else
  return a / b;
#endif
}

REPRISE_HD inline float sqrt(float x) {
#if defined(__CUDA_ARCH__)
  return __fsqrt_rn(x);
#else
  return std::sqrt(x);  // one instruction, correctly rounded
#endif
}

// The same value in every lane.
template <class V>
[[gnu::always_inline]] REPRISE_HD inline V fill(float value) {
  return value - V{};
}

// a < b ? yes : no, lane by lane, for numbers; where a or b is a NaN, either. GCC 12 takes vector
// comparisons apart into scalars below AVX-512, so vectors look at the sign of a - b instead.
template <class V>
[[gnu::always_inline]] REPRISE_HD inline V where_less(const V& a, const V& b, const V& yes,
                                                      const V& no) {
  if constexpr (std::is_same_v<V, float>) {
    return a < b ? yes : no;
  } else {
    using bits = typename detail::bits_of<V>::type;
    const bits mask = 0u - (__builtin_bit_cast(bits, a - b) >> 31);
    return __builtin_bit_cast(
        V, (__builtin_bit_cast(bits, yes) & mask) | (__builtin_bit_cast(bits, no) & ~mask));
  }
}

// x is a NaN ? yes : no, lane by lane.
template <class V>
[[gnu::always_inline]] REPRISE_HD inline V where_nan(const V& x, const V& yes, const V& no) {
  if constexpr (std::is_same_v<V, float>) {
    return x != x ? yes : no;  // NOLINT(misc-redundant-expression)
  } else {
    using bits = typename detail::bits_of<V>::type;
    const bits magnitude = __builtin_bit_cast(bits, x) & 0x7fffffffu;
    const bits mask = 0u - ((0x7f800000u - magnitude) >> 31);
    return __builtin_bit_cast(
        V, (__builtin_bit_cast(bits, yes) & mask) | (__builtin_bit_cast(bits, no) & ~mask));
  }
}

// e^x within 1.05 ulp (all 2^32 inputs tried). Exactly 1 at 0; +inf above 88.7228; results below
// the smallest normal number (x < -87.33654) are 0; a NaN comes back as it is.
//
// x = n ln2 + r with |r| <= ln2/2: adding 1.5 * 2^23 rounds x log2(e) to the integer n, which then
// lies in the low bits. ln2 is split so that n * ln2_high is exact. e^r = 1 + (r + r^2 q(r)), q of
// degree 4 through (e^r - 1 - r) / r^2 at the five Chebyshev nodes of the interval, its
// coefficients computed with 60 digits and rounded to f32: relative error below 1e-8. Then n is
// added to the exponent; the selects at the end overrule whatever came of an x out of range.
template <class V>
[[gnu::always_inline]] REPRISE_HD inline V exp(const V& x) {
  using bits = typename detail::bits_of<V>::type;
  const V shift = fill<V>(0x1.8p23f);
  const V shifted = add(mul(x, fill<V>(0x1.715476p0f)), shift);
  const V n = sub(shifted, shift);
  const V r = sub(sub(x, mul(n, fill<V>(0x1.62e4p-1f))), mul(n, fill<V>(0x1.7f7d1cp-20f)));
  V q = fill<V>(0x1.6d10fcp-10f);
  q = add(mul(q, r), fill<V>(0x1.120b62p-7f));
  q = add(mul(q, r), fill<V>(0x1.55551ap-5f));
  q = add(mul(q, r), fill<V>(0x1.5554dep-3f));
  q = add(mul(q, r), fill<V>(0.5f));
  const V p = add(fill<V>(1.0f), add(r, mul(mul(r, r), q)));
  // The nine low bits of 1.5 * 2^23 are zero: the shift leaves n alone, at the exponent's place.
  const V scaled = __builtin_bit_cast(
      V, __builtin_bit_cast(bits, p) + (__builtin_bit_cast(bits, shifted) << 23));
  const V flushed = where_less(x, fill<V>(-87.33654f), fill<V>(0.0f), scaled);
  const V capped = where_less(fill<V>(88.72283f), x, fill<V>(__builtin_huge_valf()), flushed);
  return where_nan(x, x, capped);
}

// The natural logarithm, within 0.96 ulp (all positive floats tried). Exactly 0 at 1; -inf at 0 of
// either sign, NaN below it; +inf and a NaN come back as they are.
//
// x = 2^n m with m in [sqrt(1/2), sqrt(2)), and f = m - 1, exact. With s = f / (2 + f), so that
// |s| < 0.1716, log m = 2 atanh s = 2s + s z q(z), z = s^2, q the series 2/3 + 2/5 z + 2/7 z^2 +
// 2/9 z^3 (what is left out is below 2e-9 of the result). 2s = f - s f, and so the roundings of s
// weigh only on what is added to f. ln2 is split so that n * ln2_high is exact.
REPRISE_HD inline float log(float x) {
  const bool tiny = x < 0x1p-126f;  // no normal number: scaled to be one
  const float scaled = tiny ? mul(x, 0x1p23f) : x;
  const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, scaled);
  // Those of m keep their fraction; the exponent goes up by one above sqrt(2).
  const std::uint32_t moved = bits + (0x3f800000u - 0x3f3504f3u);  // sqrt(1/2)
  const auto n = static_cast<float>(static_cast<std::int32_t>(moved >> 23) - 127 - (tiny ? 23 : 0));
  const std::uint32_t fraction = (moved & 0x007fffffu) + 0x3f3504f3u;
  const float f = sub(__builtin_bit_cast(float, fraction), 1.0f);

  const float s = div(f, add(2.0f, f));
  const float z = mul(s, s);
  float q = 0x1.c71c72p-3f;
  q = add(mul(q, z), 0x1.24924ap-2f);
  q = add(mul(q, z), 0x1.99999ap-2f);
  q = add(mul(q, z), 0x1.555556p-1f);
  const float bend = mul(s, sub(mul(z, q), f));
  const float low = add(bend, mul(n, 0x1.7f7d1cp-20f));
  const float result = add(mul(n, 0x1.62e4p-1f), add(f, low));

  if (x == 0.0f) return -__builtin_huge_valf();
  if (x < 0.0f) return __builtin_bit_cast(float, 0x7fc00000u);
  return x <= 0x1.fffffep127f ? result : x;
}

// Sine and cosine of an angle in radians, within 3e-8 for |angle| <= 1e6 (rotary positions); NaN
// for an angle that is not finite.
//
// In double: angle = k pi/2 + r with |r| <= pi/4, k < 2^20, so that k times the 33 bits of the
// first part of pi/2 is exact. Taylor series to r^13 and r^14: the rest is below r^15/15! < 3e-14,
// far under the f32 that the results are rounded to.
REPRISE_HD inline void sincos(float angle, float& s, float& c) {
  const double a = angle;
  const double shift = 0x1.8p52;  // adding it rounds to an integer, in the low bits
  const double shifted = add(mul(a, 0x1.45f306dc9c883p-1), shift);
  const double k = sub(shifted, shift);
  const double r = sub(sub(a, mul(k, 0x1.921fb544p0)), mul(k, 0x1.0b4611a626331p-34));
  const double r2 = mul(r, r);

  double sine = 1.0 / 6227020800.0;              // 13!
  sine = add(mul(sine, r2), -1.0 / 39916800.0);  // 11!
  sine = add(mul(sine, r2), 1.0 / 362880.0);     // 9!
  sine = add(mul(sine, r2), -1.0 / 5040.0);      // 7!
  sine = add(mul(sine, r2), 1.0 / 120.0);        // 5!
  sine = add(mul(sine, r2), -1.0 / 6.0);         // 3!
  sine = add(mul(mul(sine, r2), r), r);

  double cosine = -1.0 / 87178291200.0;              // 14!
  cosine = add(mul(cosine, r2), 1.0 / 479001600.0);  // 12!
  cosine = add(mul(cosine, r2), -1.0 / 3628800.0);   // 10!
  cosine = add(mul(cosine, r2), 1.0 / 40320.0);      // 8!
  cosine = add(mul(cosine, r2), -1.0 / 720.0);       // 6!
  cosine = add(mul(cosine, r2), 1.0 / 24.0);         // 4!
  cosine = add(mul(cosine, r2), -0.5);
  cosine = add(mul(cosine, r2), 1.0);

  const unsigned quarter = static_cast<unsigned>(__builtin_bit_cast(std::uint64_t, shifted)) & 3u;
  const double of_sine = (quarter & 1u) != 0 ? cosine : sine;
  const double of_cosine = (quarter & 1u) != 0 ? sine : cosine;
  s = static_cast<float>((quarter & 2u) != 0 ? -of_sine : of_sine);
  c = static_cast<float>(((quarter + 1u) & 2u) != 0 ? -of_cosine : of_cosine);
}

}  // namespace reprise::REPRISE_BODIES::math
