// How CPU bodies go over rows: a part of part_columns at a time, in arrays of their own, where the
// compiler makes vectors of it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "reprise/base/mutant.hpp"
#include "reprise/device/elements.hpp"
#include "reprise/sdm/chunk_place.hpp"
#include "reprise/sdm/number.hpp"

namespace reprise::REPRISE_BODIES::sdm {

// body(column, columns) for each part of a row.
template <class Body>
void each_part(std::int64_t width, const Body& body) {
  for (std::int64_t column = 0; column < width; column += part_columns) {
    body(column, std::min(part_columns, width - column));
  }
}

template <class B, class X>
void read_widened(pointer_to<const B> from, std::int64_t columns, X* to) {
  B part[part_columns];
  read_elements(from, static_cast<std::size_t>(columns), part);
  for (std::int64_t j = 0; j < columns; ++j) to[j] = widened<X>(part[j]);
}

template <class X>
void read_part(pointer_to<const X> from, std::int64_t columns, X* to) {
  read_elements(from, static_cast<std::size_t>(columns), to);
}

// What is to be stored, in the bank's type.
template <class B, class X>
void store_part(const X* from, std::int64_t columns, pointer_to<B> to) {
  B narrowed[part_columns];
  for (std::int64_t j = 0; j < columns; ++j) narrowed[j] = stored<B>(from[j]);
  write_elements(narrowed, static_cast<std::size_t>(columns), to);
}

// sum[j] = the sum over `count` rows of weight * row, in their order from 0; an index that is no
// row of stream p is left out. Of the part that begins at `column`.
template <class B, class X>
void sum_rows(const chunk_place& c, std::int64_t p, pointer_to<const B> bank,
              pointer_to<const std::int32_t> index, pointer_to<const X> weight, std::int32_t count,
              std::int64_t column, std::int64_t columns, X* sum) {
  std::fill_n(sum, columns, X{0});
  for (std::int32_t w = 0; w < count; ++w) {
    const std::int64_t row = index[w];
    const bool in_bank = row >= 0 && row < c.streams * c.slots;
    if (!(REPRISE_MUTANT(sdm_reads_rows_of_other_streams) ? in_bank : c.is_row_of(p, row)))
      continue;
    B from[part_columns];
    read_elements(bank + (row * c.width + column), static_cast<std::size_t>(columns), from);
    const X by = weight[w];
    for (std::int64_t j = 0; j < columns; ++j) sum[j] += by * widened<X>(from[j]);
  }
}

// The dot product of two parts, in the order of number.hpp.
template <class X>
X part_dot(const X* a, const X* b, std::int64_t columns) {
  constexpr std::int64_t lanes = part_columns / lane_columns;
  X products[part_columns];
  for (std::int64_t j = 0; j < columns; ++j) products[j] = a[j] * b[j];
  std::fill(products + columns, products + part_columns, X{0});  // changes no sum
  X sums[lanes] = {};
  for (std::int64_t j = 0; j < lane_columns; ++j) {
    for (std::int64_t l = 0; l < lanes; ++l) sums[l] += products[l * lane_columns + j];
  }
  for (std::int64_t half = lanes / 2; half > 0; half /= 2) {
    for (std::int64_t l = 0; l < half; ++l) sums[l] += sums[l + half];
  }
  return sums[0];
}

}  // namespace reprise::REPRISE_BODIES::sdm
