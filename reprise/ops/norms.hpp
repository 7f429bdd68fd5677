// What norms share: the formulas of an element, and the order in which they sum over rows.
//
// Sums over rows are formed for many columns side by side. Rows are cut into chunks of 32, and
// summed in 8 slots within one; the chunks' sums, in their order, are in 32 slots (slot_sum.hpp).
// So the order is fixed by the number of rows alone, a column has the bits it has alone, and the
// CPU and CUDA (norms.cuh) agree.
#pragma once

#include <algorithm>
#include <cstdint>

#include "reprise/base/gradient_rule.hpp"
#include "reprise/base/portable.hpp"
#include "reprise/device/pointer.hpp"
#include "reprise/ops/math.hpp"
#include "reprise/ops/rows.hpp"
#include "reprise/ops/slot_sum.hpp"

namespace reprise::REPRISE_BODIES::ops {

inline constexpr int norm_chunk_rows = 32;
inline constexpr int norm_chunk_slots = 8;  // within a chunk of rows
inline constexpr std::int64_t most_norm_columns = 32 * most_blocks_across;  // 32 columns to a block

constexpr std::int64_t norm_chunks(std::int64_t rows) {
  return (rows + norm_chunk_rows - 1) / norm_chunk_rows;
}

// How many rows the chunk that begins with this one has.
constexpr std::int64_t rows_of_chunk(std::int64_t first, std::int64_t rows) {
  return rows - first < norm_chunk_rows ? rows - first : norm_chunk_rows;
}

REPRISE_HD inline float unit_of(float x, float mean, float inverse) {
  return math::mul(math::sub(x, mean), inverse);
}

REPRISE_HD inline float norm_y(float unit, float gain, float bias) {
  return math::add(math::mul(unit, gain), bias);
}

REPRISE_HD inline float inverse_deviation(float variance, float eps) {
  return math::div(1.0f, math::sqrt(math::add(variance, eps)));
}

// One element of dx, from the means of g and of g * unit over what was normalized together.
REPRISE_HD inline float norm_dx(float g, float unit, float inverse, float mean, float along) {
  return math::mul(inverse, math::sub(math::sub(g, mean), math::mul(unit, along)));
}

// Up to so many chunks CUDA sums all of them in one launch, which needs no workspace.
inline constexpr std::int64_t few_norm_chunks = 4;

// The CPU's half. Columns that are summed side by side:
inline constexpr std::int64_t norm_tile = 32;

// Of one row.
struct row_stats {
  float mean;
  float inverse;
};

inline row_stats stats_of(pointer_to<const float> x, std::int64_t width, float eps) {
  const auto count = static_cast<float>(width);
  const float mean = slot_sum<row_slots>(width, [&](std::int64_t l) { return x[l]; }) / count;
  const float squares = slot_sum<row_slots>(width, [&](std::int64_t l) {
    const float off = x[l] - mean;
    return off * off;
  });
  return {mean, inverse_deviation(squares / count, eps)};
}

// sums[t], a sum in slots for each t: what slot_sum is for one. add(l, slot) adds the terms of l,
// from 0 to below `count`, to slot[t].
template <int Slots, int Terms, class Add>
void slot_sums(std::int64_t count, const Add& add, float (&sums)[Terms]) {
  float slots[Slots][Terms] = {};
  for (std::int64_t l = 0; l < count; ++l) add(l, slots[l % Slots]);
  for (int half = Slots / 2; half > 0; half /= 2) {
    for (int s = 0; s < half; ++s) {
      for (int t = 0; t < Terms; ++t) slots[s][t] += slots[s + half][t];
    }
  }
  std::copy(slots[0], slots[0] + Terms, sums);
}

// Of the rows of one chunk; add(row, slot) adds those of a row.
template <int Terms, class Add>
void sum_chunk(std::int64_t first, std::int64_t rows, const Add& add, float (&sums)[Terms]) {
  slot_sums<norm_chunk_slots>(
      rows_of_chunk(first, rows),
      [&](std::int64_t l, float(&slot)[Terms]) { add(first + l, slot); }, sums);
}

// Of all rows.
template <int Terms, class Add>
void sum_rows(std::int64_t rows, const Add& add, float (&sums)[Terms]) {
  slot_sums<row_slots>(
      norm_chunks(rows),
      [&](std::int64_t chunk, float(&slot)[Terms]) {
        float of_chunk[Terms];
        sum_chunk(chunk * norm_chunk_rows, rows, add, of_chunk);
        for (int t = 0; t < Terms; ++t) slot[t] += of_chunk[t];
      },
      sums);
}

// The finished sums of columns [begin, begin + count), to where the gradient goes.
inline void put_columns(gradient_rule rule, const float* sums, std::int64_t begin,
                        std::int64_t count, pointer_to<float> gradient) {
  if (rule == gradient_rule::leave) return;  // there may be no buffer
  const auto to = gradient + begin;
  for (std::int64_t j = 0; j < count; ++j) {
    const float old = rule == gradient_rule::add ? static_cast<float>(to[j]) : 0.0f;
    to[j] = put(rule, old, sums[j]);
  }
}

}  // namespace reprise::REPRISE_BODIES::ops
