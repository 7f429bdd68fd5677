// Element types: what tensors are stored as, on devices and in files.
//
// Arithmetic is always f32 or wider; bf16 and f16 are storage. Conversions are the same source on
// host and device, so a widened weight has the same bits everywhere.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "reprise/base/portable.hpp"

namespace reprise {

enum class dtype : std::uint8_t { f32, f16, bf16, f64, i32, i64, u64, u8 };

constexpr std::size_t size_of(dtype type) {
  switch (type) {
    case dtype::u8: return 1;
    case dtype::f16:
    case dtype::bf16: return 2;
    case dtype::f32:
    case dtype::i32: return 4;
    case dtype::f64:
    case dtype::i64:
    case dtype::u64: return 8;
  }
  return 0;
}

constexpr std::string_view name_of(dtype type) {
  switch (type) {
    case dtype::f32: return "f32";
    case dtype::f16: return "f16";
    case dtype::bf16: return "bf16";
    case dtype::f64: return "f64";
    case dtype::i32: return "i32";
    case dtype::i64: return "i64";
    case dtype::u64: return "u64";
    case dtype::u8: return "u8";
  }
  return "?";
}

// bfloat16: the upper half of an f32. Narrowing rounds to nearest, ties to even; NaN stays NaN.
struct bf16 {
  std::uint16_t bits;
};

REPRISE_HD inline float widen(float x) {
  return x;
}

REPRISE_HD inline float widen(bf16 x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
}

template <class T>
REPRISE_HD T narrow(float x);

template <>
REPRISE_HD inline float narrow<float>(float x) {
  return x;
}

template <>
REPRISE_HD inline bf16 narrow<bf16>(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return bf16{static_cast<std::uint16_t>((bits >> 16) | 0x40u)};
  }
  return bf16{static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

// IEEE half to f32: exact, subnormals included. Weights in f16 files are widened with it at load.
inline float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fu;
  const std::uint32_t fraction = half & 0x3ffu;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  const std::uint32_t wide = exponent == 0x1fu ? 0xffu : exponent + 112u;
  return std::bit_cast<float>(sign | (wide << 23) | (fraction << 13));
}

// C++ types that stand for an element; f16 has none, since it is only read from files.
template <class T>
concept element = std::same_as<T, float> || std::same_as<T, bf16> || std::same_as<T, double> ||
                  std::same_as<T, std::int32_t> || std::same_as<T, std::int64_t> ||
                  std::same_as<T, std::uint64_t> || std::same_as<T, std::uint8_t>;

// The dtype of a C++ element type; a type that is not an element does not compile.
template <class T>
inline constexpr dtype dtype_of = T::not_an_element_type;
template <>
inline constexpr dtype dtype_of<float> = dtype::f32;
template <>
inline constexpr dtype dtype_of<bf16> = dtype::bf16;
template <>
inline constexpr dtype dtype_of<double> = dtype::f64;
template <>
inline constexpr dtype dtype_of<std::int32_t> = dtype::i32;
template <>
inline constexpr dtype dtype_of<std::int64_t> = dtype::i64;
template <>
inline constexpr dtype dtype_of<std::uint64_t> = dtype::u64;
template <>
inline constexpr dtype dtype_of<std::uint8_t> = dtype::u8;

}  // namespace reprise
