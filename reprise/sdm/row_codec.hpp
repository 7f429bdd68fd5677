// How the numbers of a saved row are rounded to fp8 and int4 (saved_rows.hpp). Integers and single
// IEEE operations: the same bits on every device. Whole rows: saved_row.hpp, saved_row.cuh.
//
// What is quantised is f32: an f64 bank's numbers are rounded to that first.
#pragma once

#include <cstdint>
#include <type_traits>

#include "reprise/base/dtype.hpp"
#include "reprise/base/portable.hpp"
#include "reprise/ops/math.hpp"
#include "reprise/sdm/saved_rows.hpp"

namespace reprise::REPRISE_BODIES::sdm {

inline constexpr float largest_e4m3 = 448.0f;
inline constexpr float largest_int4 = 7.0f;

// Where the scales of a row begin, in bytes.
REPRISE_HD constexpr std::int64_t scales_begin(saved_rows format, std::int64_t width) {
  const std::int64_t codes = format == saved_rows::fp8 ? width : (width + 1) / 2;
  return (codes + 15) / 16 * 16;
}

template <class B>
REPRISE_HD inline float as_float(B x) {
  if constexpr (std::is_same_v<B, double>) {
    return static_cast<float>(x);
  } else {
    return widen(x);
  }
}

template <class B>
REPRISE_HD inline B from_float(float x) {
  if constexpr (std::is_same_v<B, double>) {
    return x;
  } else {
    return narrow<B>(x);
  }
}

// The bits of |x|: in the order of magnitudes, infinity behind all numbers and NaNs behind that.
REPRISE_HD inline std::uint32_t magnitude_bits(float x) {
  return __builtin_bit_cast(std::uint32_t, x) & 0x7fffffffu;
}

// The scale of numbers whose largest has these magnitude_bits; `most` is the largest code.
REPRISE_HD inline float scale_of(std::uint32_t largest, float most) {
  if (largest >= 0x7f800000u) return __builtin_bit_cast(float, 0x7fc00000u);
  return math::div(__builtin_bit_cast(float, largest), most);
}

// 0 for each number of a row that comes back as zeros or, times a scale that is one, as NaNs.
REPRISE_HD inline float over_scale(float x, float scale) {
  return scale > 0.0f ? math::div(x, scale) : 0.0f;
}

// To nearest, ties to even. What is above 448 becomes that: only where the scale is no normal
// number, and so itself rounded by more than the codes allow for. A NaN keeps its sign.
REPRISE_HD inline std::uint8_t to_e4m3(float x) {
  const std::uint32_t sign = __builtin_bit_cast(std::uint32_t, x) >> 31 << 7;
  const std::uint32_t magnitude = magnitude_bits(x);
  std::uint32_t code = 0;
  if (magnitude > 0x7f800000u) {
    code = 0x7f;
  } else if (magnitude >= 0x43e00000u) {  // 448
    code = 0x7e;
  } else if (magnitude >= 0x3c800000u) {  // 2^-6, the smallest normal number
    const std::uint32_t even = (magnitude >> 20) & 1u;
    code = ((magnitude + 0x7ffffu + even) >> 20) - ((127u - 7u) << 3);
  } else {
    // The step of an f32 at 2^14 is 2^-9, as that of these numbers: one addition rounds.
    const float rounded = math::add(__builtin_bit_cast(float, magnitude), 0x1p14f);
    code = __builtin_bit_cast(std::uint32_t, rounded) - 0x46800000u;
  }
  return static_cast<std::uint8_t>(sign | code);
}

REPRISE_HD inline float from_e4m3(std::uint8_t code) {
  const std::uint32_t sign = static_cast<std::uint32_t>(code >> 7) << 31;
  const std::uint32_t magnitude = code & 0x7fu;
  if (magnitude == 0x7fu) return __builtin_bit_cast(float, sign | 0x7fc00000u);
  // As an f32 it is 2^-120 of itself, whether its exponent is 0 or not.
  const float small = __builtin_bit_cast(float, sign | (magnitude << 20));
  return math::mul(small, 0x1p120f);
}

// A nibble, for |x| up to 7; beyond, that of 7.
REPRISE_HD inline std::uint32_t to_int4(float x) {
  if (x > largest_int4) x = largest_int4;
  if (x < -largest_int4) x = -largest_int4;
  // Rounded to an integer, which lies in the low bits in two's complement.
  const float shifted = math::add(x, 0x1.8p23f);
  return __builtin_bit_cast(std::uint32_t, shifted) & 0xfu;
}

REPRISE_HD inline float from_int4(std::uint32_t nibble) {
  const auto value = static_cast<std::int32_t>((nibble & 0xfu) ^ 8u) - 8;
  return static_cast<float>(value);
}

}  // namespace reprise::REPRISE_BODIES::sdm
