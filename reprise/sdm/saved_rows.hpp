// How rows of the bank are kept for the backward: as they are stored, so that the bank is rewound
// bit for bit; or quantised, in fewer bytes.
//
//   as_stored   D elements of the bank's type
//   fp8         D bytes, e4m3 (1 sign, 4 exponent, 3 fraction bits, bias 7, no infinities, 0x7f is
//               NaN: Micikevicius et al., "FP8 Formats for Deep Learning", 2022), of the element
//               over the row's scale, |largest| / 448
//   int4        two's complement nibbles, the even column low, of the element over the scale of its
//               group of 32 columns, |largest| / 7
// each rounded to nearest, ties to even; behind them the scales, f32. A row takes row_bytes: its
// parts padded to 16 bytes, and nobody reads or writes the padding. What has one scale, a row of
// fp8 or a group of int4, comes back as zeros where it is zeros and has scale 0, and as NaNs where
// it has a NaN or an infinity. An f64 bank's numbers are rounded to f32 before they are quantised.
#pragma once

#include <cstdint>

#include "reprise/base/portable.hpp"

namespace reprise {

enum class saved_rows : std::int32_t { as_stored, fp8, int4 };

inline constexpr std::int64_t int4_group = 32;

// Bytes from one saved row to the next; `stored` is the size of an element of the bank.
REPRISE_HD constexpr std::int64_t row_bytes(saved_rows format, std::int64_t width,
                                            std::int64_t stored) {
  constexpr auto padded = [](std::int64_t bytes) { return (bytes + 15) / 16 * 16; };
  switch (format) {
    case saved_rows::fp8: return padded(width) + 16;
    case saved_rows::int4:
      return padded((width + 1) / 2) + padded(4 * ((width + int4_group - 1) / int4_group));
    case saved_rows::as_stored: break;
  }
  return padded(width * stored);
}

}  // namespace reprise
