// How matrix products treat f32 operands: part of what a recording is right under.
//
// `full` multiplies them as they are. `tf32` rounds each operand to ten bits of fraction first;
// products and sums are f32 either way. Operands of fewer bits are the same under both.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include "reprise/base/portable.hpp"

namespace reprise {

enum class matrix_precision : std::int32_t { full, tf32 };

constexpr std::string_view name_of(matrix_precision precision) {
  switch (precision) {
    case matrix_precision::full: return "full";
    case matrix_precision::tf32: return "tf32";
  }
  return "?";
}

// To the nearest float whose lower 13 bits are zero, ties to the even one; NaN stays NaN, and what
// lies beyond the largest becomes infinite. One source for host and device, so that both multiply
// the same operands. PTX leaves open what tensor cores do with those bits: whoever feeds them
// rounds first.
REPRISE_HD inline float rounded_to_tf32(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  const std::uint32_t near = (bits + 0xfffu + ((bits >> 13) & 1u)) & 0xffffe000u;
  return std::bit_cast<float>(is_nan ? bits | 0x400000u : near);
}

}  // namespace reprise
