// Saving rows of the bank and bringing them back, on CUDA (saved_rows.hpp, row_codec.hpp): by a
// warp, a part of 256 columns at a time, eight columns to a lane.
//
// The scale of a row of fp8 needs all parts of it, and a row is written in place part by part: so
// scales are saved by a kernel of their own, before.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "reprise/sdm/eight.cuh"
#include "reprise/sdm/row_codec.hpp"
#include "reprise/sdm/saved_rows.hpp"

namespace reprise::REPRISE_BODIES::sdm {

// A word at any address.
__device__ inline void put_word(std::uint8_t* to, std::uint32_t word) {
#pragma unroll
  for (int i = 0; i < 4; ++i) to[i] = static_cast<std::uint8_t>(word >> (8 * i));
}

__device__ inline std::uint32_t word_at(const std::uint8_t* from) {
  std::uint32_t word = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) word |= static_cast<std::uint32_t>(from[i]) << (8 * i);
  return word;
}

template <bool Aligned>
__device__ inline void save_scale(std::uint8_t* to, float scale) {
  if constexpr (Aligned) {
    *reinterpret_cast<float*>(to) = scale;
  } else {
    put_word(to, __float_as_uint(scale));
  }
}

template <bool Aligned>
__device__ inline float saved_scale(const std::uint8_t* from) {
  if constexpr (Aligned) {
    return *reinterpret_cast<const float*>(from);
  } else {
    return __uint_as_float(word_at(from));
  }
}

__device__ inline std::uint32_t largest_of(const float (&x)[8]) {
  std::uint32_t largest = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) largest = max(largest, magnitude_bits(x[i]));
  return largest;
}

// The largest of `Lanes` neighbouring lanes, in each of them.
template <int Lanes>
__device__ inline std::uint32_t largest_of_lanes(std::uint32_t largest) {
#pragma unroll
  for (int step = 1; step < Lanes; step *= 2) {
    largest = max(largest, __shfl_xor_sync(all_lanes, largest, step));
  }
  return largest;
}

// `count` bytes, of which Aligned takes all at once.
template <bool Aligned, int Count>
__device__ inline void save_bytes(std::uint8_t* to, const std::uint32_t (&words)[Count / 4],
                                  std::int64_t count) {
  if constexpr (Aligned && Count == 8) {
    *reinterpret_cast<uint2*>(to) = make_uint2(words[0], words[1]);
  } else if constexpr (Aligned) {
    *reinterpret_cast<std::uint32_t*>(to) = words[0];
  } else {
#pragma unroll
    for (int i = 0; i < Count; ++i) {
      if (i < count) to[i] = static_cast<std::uint8_t>(words[i / 4] >> (i % 4 * 8));
    }
  }
}

template <bool Aligned, int Count>
__device__ inline void saved_bytes_at(const std::uint8_t* from, std::int64_t count,
                                      std::uint32_t (&words)[Count / 4]) {
  if constexpr (Aligned && Count == 8) {
    const uint2 two = *reinterpret_cast<const uint2*>(from);
    words[0] = two.x;
    words[1] = two.y;
  } else if constexpr (Aligned) {
    words[0] = *reinterpret_cast<const std::uint32_t*>(from);
  } else {
#pragma unroll
    for (int i = 0; i < Count / 4; ++i) words[i] = 0;
#pragma unroll
    for (int i = 0; i < Count; ++i) {
      if (i < count) words[i / 4] |= static_cast<std::uint32_t>(from[i]) << (i % 4 * 8);
    }
  }
}

// The columns from `at` of a row, as the bank holds them and as numbers. By whole warps: by lanes
// past the end, which save nothing, too. Quantised: the format is another than as_stored.
template <bool Aligned, bool Quantised, class B>
__device__ void save_eight(saved_rows format, std::uint8_t* to, std::int64_t at, std::int64_t width,
                           const eight<B>& stored, const float (&x)[8]) {
  if constexpr (!Quantised) {
    if constexpr (Aligned) {
      if (at < width) store_words(to + at * sizeof(B), stored);
    } else {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        if (at + i >= width) continue;
        const std::uint32_t bits = element(stored, i);
#pragma unroll
        for (int byte = 0; byte < static_cast<int>(sizeof(B)); ++byte) {
          to[(at + i) * sizeof(B) + byte] = static_cast<std::uint8_t>(bits >> (8 * byte));
        }
      }
    }
    return;
  }
  std::uint8_t* const scales = to + scales_begin(format, width);
  if (format == saved_rows::fp8) {
    if (at >= width) return;
    const float scale = saved_scale<Aligned>(scales);
    std::uint32_t codes[2] = {};
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      codes[i / 4] |= std::uint32_t{to_e4m3(over_scale(x[i], scale))} << (i % 4 * 8);
    }
    save_bytes<Aligned, 8>(to + at, codes, width - at);
    return;
  }
  static_assert(int4_group == 4 * lane_columns, "a group is four lanes");
  const float scale = scale_of(largest_of_lanes<4>(largest_of(x)), largest_int4);
  if (at >= width) return;
  std::uint32_t codes[1] = {};
#pragma unroll
  for (int i = 0; i < 8; ++i) codes[0] |= to_int4(over_scale(x[i], scale)) << (4 * i);
  save_bytes<Aligned, 4>(to + at / 2, codes, (width - at + 1) / 2);
  if (at % int4_group == 0) save_scale<Aligned>(scales + at / int4_group * 4, scale);
}

// The columns from `at` of a saved row as the bank held them; zeros past the end.
template <bool Aligned, class B>
__device__ void restore_eight(saved_rows format, const std::uint8_t* from, std::int64_t at,
                              std::int64_t width, eight<B>& to) {
#pragma unroll
  for (int i = 0; i < eight<B>::words; ++i) to.word[i] = 0;
  if (at >= width) return;
  if (format == saved_rows::as_stored) {
    if constexpr (Aligned) {
      load_words(from + at * sizeof(B), to);
    } else {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        if (at + i >= width) continue;
        std::uint32_t bits = 0;
#pragma unroll
        for (int byte = 0; byte < static_cast<int>(sizeof(B)); ++byte) {
          bits |= static_cast<std::uint32_t>(from[(at + i) * sizeof(B) + byte]) << (8 * byte);
        }
        set_element(to, i, bits);
      }
    }
    return;
  }
  const std::uint8_t* const scales = from + scales_begin(format, width);
  float x[8];
  if (format == saved_rows::fp8) {
    std::uint32_t codes[2];
    saved_bytes_at<Aligned, 8>(from + at, width - at, codes);
    const float scale = saved_scale<Aligned>(scales);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      x[i] = math::mul(from_e4m3(static_cast<std::uint8_t>(codes[i / 4] >> (i % 4 * 8))), scale);
    }
  } else {
    std::uint32_t codes[1];
    saved_bytes_at<Aligned, 4>(from + at / 2, (width - at + 1) / 2, codes);
    const float scale = saved_scale<Aligned>(scales + at / int4_group * 4);
#pragma unroll
    for (int i = 0; i < 8; ++i) x[i] = math::mul(from_int4(codes[0] >> (4 * i)), scale);
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) {  // a NaN of the scale's is none of the columns that are not there
    if (Aligned || at + i < width) set_element(to, i, bits_of(narrow<B>(x[i])));
  }
}

}  // namespace reprise::REPRISE_BODIES::sdm
