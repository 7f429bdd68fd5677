// The products of a chunk's triangular matrices [C, C] with rows of tokens, on the CPU: a slice of
// columns at a time, and a block of rows of it, which share what they read.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "reprise/device/cpu_call.hpp"
#include "reprise/sdm/chunk_place.hpp"
#include "reprise/sdm/row_part.hpp"

namespace reprise::REPRISE_BODIES::sdm {

inline constexpr std::int64_t slice_columns = 64;
inline constexpr std::int64_t block_rows = 4;
static_assert(slice_columns <= part_columns, "what store_part takes");

// body(p, column, columns) for each stream and slice.
template <class Body>
void each_slice(const cpu_call& call, const chunk_place& c, const Body& body) {
  const std::int64_t slices = (c.width + slice_columns - 1) / slice_columns;
  const std::int64_t cost = std::int64_t{c.count} * c.count * std::min(c.width, slice_columns);
  const std::int64_t grain = std::max<std::int64_t>(1, 32768 / cost);
  call.parallel_for(c.streams * slices, grain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t column = i % slices * slice_columns;
      body(i / slices, column, std::min(slice_columns, c.width - column));
    }
  });
}

// One row of a slice, each number of it times `strength` where that is there.
template <class X>
void read_row(pointer_to<const X> rows, std::int64_t row, std::int64_t width, std::int64_t columns,
              pointer_to<const X> strength, X* to) {
  read_part<X>(rows + row * width, columns, to);
  if (!strength) return;
  const X by = strength[row];
  for (std::int64_t j = 0; j < columns; ++j) to[j] = by * to[j];
}

// sums[i] = the sum over s <= t + i of matrix[t + i, s] * rows[s], in increasing s from 0.
template <class X>
void sum_before(const chunk_place& c, pointer_to<const X> matrix, pointer_to<const X> strength,
                pointer_to<const X> rows, std::int64_t t, std::int64_t count, std::int64_t columns,
                X (&sums)[block_rows][slice_columns]) {
  for (std::int64_t i = 0; i < count; ++i) std::fill_n(sums[i], columns, X{0});
  for (std::int64_t s = 0; s < t + count; ++s) {
    X row[slice_columns];
    read_row<X>(rows, s, c.width, columns, strength, row);
    for (std::int64_t i = std::max<std::int64_t>(0, s - t); i < count; ++i) {
      const X by = matrix[(t + i) * c.chunk + s];
      for (std::int64_t j = 0; j < columns; ++j) sums[i][j] += by * row[j];
    }
  }
}

// sums[i] = the sum over t >= s + i of matrix[t, s + i] * rows[t], in increasing t from 0.
template <class X>
void sum_behind(const chunk_place& c, pointer_to<const X> matrix, pointer_to<const X> rows,
                std::int64_t s, std::int64_t count, std::int64_t columns,
                X (&sums)[block_rows][slice_columns]) {
  for (std::int64_t i = 0; i < count; ++i) std::fill_n(sums[i], columns, X{0});
  for (std::int64_t t = s; t < c.count; ++t) {
    X row[slice_columns];
    read_row<X>(rows, t, c.width, columns, {}, row);
    for (std::int64_t i = 0; i < std::min(count, t - s + 1); ++i) {
      const X by = matrix[t * c.chunk + s + i];
      for (std::int64_t j = 0; j < columns; ++j) sums[i][j] += by * row[j];
    }
  }
}

}  // namespace reprise::REPRISE_BODIES::sdm
