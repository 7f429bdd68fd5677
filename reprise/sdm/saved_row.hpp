// Saving rows of the bank and bringing them back, on the CPU (saved_rows.hpp, row_codec.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "reprise/device/elements.hpp"
#include "reprise/sdm/number.hpp"
#include "reprise/sdm/row_codec.hpp"
#include "reprise/sdm/row_part.hpp"
#include "reprise/sdm/saved_rows.hpp"

namespace reprise::REPRISE_BODIES::sdm {

namespace detail {

// One part of a row as f32.
template <class B>
void read_floats(pointer_to<const B> from, std::int64_t columns, float* to) {
  B part[part_columns];
  read_elements(from, static_cast<std::size_t>(columns), part);
  for (std::int64_t j = 0; j < columns; ++j) to[j] = as_float(part[j]);
}

inline std::uint32_t largest_of(const float* x, std::int64_t count, std::uint32_t largest = 0) {
  for (std::int64_t j = 0; j < count; ++j) largest = std::max(largest, magnitude_bits(x[j]));
  return largest;
}

inline void write_scale(float scale, pointer_to<std::uint8_t> to) {
  write_elements(&scale, sizeof scale, to);
}

inline float scale_at(pointer_to<const std::uint8_t> from) {
  float scale = 0;
  read_elements(from, sizeof scale, &scale);
  return scale;
}

// A part begins a group.
static_assert(part_columns % int4_group == 0);

inline void save_int4(const float* x, std::int64_t columns, std::uint8_t* codes, float* scales) {
  std::fill_n(codes, (columns + 1) / 2, std::uint8_t{0});
  for (std::int64_t j = 0; j < columns; j += int4_group) {
    const std::int64_t here = std::min(int4_group, columns - j);
    const float scale = scale_of(largest_of(x + j, here), largest_int4);
    scales[j / int4_group] = scale;
    for (std::int64_t i = j; i < j + here; ++i) {
      const std::uint32_t nibble = to_int4(over_scale(x[i], scale)) << (i % 2 * 4);
      codes[i / 2] = static_cast<std::uint8_t>(codes[i / 2] | nibble);
    }
  }
}

}  // namespace detail

template <class B>
void save_row(saved_rows format, std::int64_t width, pointer_to<const B> row,
              pointer_to<std::uint8_t> to) {
  float x[part_columns];
  std::uint8_t codes[part_columns];
  switch (format) {
    case saved_rows::fp8: {
      std::uint32_t largest = 0;
      each_part(width, [&](std::int64_t column, std::int64_t columns) {
        detail::read_floats<B>(row + column, columns, x);
        largest = detail::largest_of(x, columns, largest);
      });
      const float scale = scale_of(largest, largest_e4m3);
      each_part(width, [&](std::int64_t column, std::int64_t columns) {
        detail::read_floats<B>(row + column, columns, x);
        for (std::int64_t j = 0; j < columns; ++j) codes[j] = to_e4m3(over_scale(x[j], scale));
        write_elements(codes, static_cast<std::size_t>(columns), to + column);
      });
      detail::write_scale(scale, to + scales_begin(format, width));
      return;
    }
    case saved_rows::int4:
      each_part(width, [&](std::int64_t column, std::int64_t columns) {
        float scales[part_columns / int4_group];
        detail::read_floats<B>(row + column, columns, x);
        detail::save_int4(x, columns, codes, scales);
        write_elements(codes, static_cast<std::size_t>((columns + 1) / 2), to + column / 2);
        for (std::int64_t j = 0; j < columns; j += int4_group) {
          detail::write_scale(scales[j / int4_group],
                              to + (scales_begin(format, width) + 4 * ((column + j) / int4_group)));
        }
      });
      return;
    case saved_rows::as_stored: break;
  }
  each_part(width, [&](std::int64_t column, std::int64_t columns) {
    B part[part_columns];
    read_elements(row + column, static_cast<std::size_t>(columns), part);
    write_elements(part, static_cast<std::size_t>(columns) * sizeof(B),
                   to + column * static_cast<std::int64_t>(sizeof(B)));
  });
}

// Columns [column, column + columns) of a saved row, a part of it, in the bank's type.
template <class B>
void restore_part(saved_rows format, std::int64_t width, pointer_to<const std::uint8_t> from,
                  std::int64_t column, std::int64_t columns, B* to) {
  std::uint8_t codes[part_columns];
  const auto scales = from + scales_begin(format, width);
  switch (format) {
    case saved_rows::fp8: {
      read_elements(from + column, static_cast<std::size_t>(columns), codes);
      const float scale = detail::scale_at(scales);
      for (std::int64_t j = 0; j < columns; ++j) {
        to[j] = from_float<B>(from_e4m3(codes[j]) * scale);
      }
      return;
    }
    case saved_rows::int4:
      read_elements(from + column / 2, static_cast<std::size_t>((columns + 1) / 2), codes);
      for (std::int64_t j = 0; j < columns; j += int4_group) {
        const float scale = detail::scale_at(scales + 4 * ((column + j) / int4_group));
        for (std::int64_t i = j; i < std::min(j + int4_group, columns); ++i) {
          to[i] = from_float<B>(from_int4(static_cast<std::uint32_t>(codes[i / 2]) >> (i % 2 * 4)) *
                                scale);
        }
      }
      return;
    case saved_rows::as_stored: break;
  }
  read_elements(from + column * static_cast<std::int64_t>(sizeof(B)),
                static_cast<std::size_t>(columns) * sizeof(B), to);
}

}  // namespace reprise::REPRISE_BODIES::sdm
