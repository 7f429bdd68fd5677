// How matrix products treat f32 operands: part of what a recording is right under.
#pragma once

#include <cstdint>
#include <string_view>

namespace reprise {

// `tf32`: each operand is rounded to ten bits of fraction before it is multiplied; sums are f32.
enum class matrix_precision : std::int32_t { full, tf32 };

constexpr std::string_view name_of(matrix_precision p) {
  return p == matrix_precision::tf32 ? "tf32" : "full";
}

}  // namespace reprise
