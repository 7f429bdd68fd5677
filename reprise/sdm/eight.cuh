// Eight neighbouring columns of a row as they are stored, in a lane's registers: loads of many rows
// are in flight before the first is widened, and bits come back as they were. ops/eight.cuh has the
// same for f32.
//
// With Aligned, a row's width is a multiple of eight and its address of 16 bytes; otherwise columns
// go one by one. Columns at and past `end` are read as zeros and not written.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "reprise/base/dtype.hpp"
#include "reprise/ops/eight.cuh"
#include "reprise/ops/math.hpp"
#include "reprise/ops/slot_sum.cuh"
#include "reprise/sdm/number.hpp"

namespace reprise::REPRISE_BODIES::sdm {

inline constexpr unsigned all_lanes = 0xffffffffu;

template <class B>
struct eight {
  static constexpr int words = static_cast<int>(2 * sizeof(B));
  std::uint32_t word[words];
};

__device__ inline std::uint32_t bits_of(bf16 x) {
  return x.bits;
}
__device__ inline std::uint32_t bits_of(float x) {
  return __float_as_uint(x);
}
__device__ inline void set_bits(bf16& x, std::uint32_t bits) {
  x.bits = static_cast<std::uint16_t>(bits);
}
__device__ inline void set_bits(float& x, std::uint32_t bits) {
  x = __uint_as_float(bits);
}

// Element i, in the low bits.
template <class B>
__device__ inline std::uint32_t element(const eight<B>& of, int i) {
  if constexpr (sizeof(B) == 2) {
    return (of.word[i / 2] >> (i % 2 * 16)) & 0xffffu;
  } else {
    return of.word[i];
  }
}

template <class B>
__device__ inline void set_element(eight<B>& of, int i, std::uint32_t bits) {
  if constexpr (sizeof(B) == 2) {
    of.word[i / 2] = i % 2 == 0 ? bits : of.word[i / 2] | (bits << 16);
  } else {
    of.word[i] = bits;
  }
}

// 16 bytes at a time.
template <class B>
__device__ inline void load_words(const void* from, eight<B>& to) {
#pragma unroll
  for (int i = 0; i < eight<B>::words / 4; ++i) {
    const uint4 four = static_cast<const uint4*>(from)[i];
    to.word[4 * i] = four.x;
    to.word[4 * i + 1] = four.y;
    to.word[4 * i + 2] = four.z;
    to.word[4 * i + 3] = four.w;
  }
}

template <class B>
__device__ inline void store_words(void* to, const eight<B>& from) {
#pragma unroll
  for (int i = 0; i < eight<B>::words / 4; ++i) {
    static_cast<uint4*>(to)[i] = make_uint4(from.word[4 * i], from.word[4 * i + 1],
                                            from.word[4 * i + 2], from.word[4 * i + 3]);
  }
}

template <bool Aligned, class B>
__device__ inline void load_stored(const B* row, std::int64_t at, std::int64_t end, eight<B>& to) {
  if constexpr (Aligned) {
    if (at < end) {
      load_words(row + at, to);
    } else {
#pragma unroll
      for (int i = 0; i < eight<B>::words; ++i) to.word[i] = 0;
    }
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i) set_element(to, i, at + i < end ? bits_of(row[at + i]) : 0u);
  }
}

template <bool Aligned, class B>
__device__ inline void store_stored(B* row, std::int64_t at, std::int64_t end,
                                    const eight<B>& from) {
  if constexpr (Aligned) {
    if (at < end) store_words(row + at, from);
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (at + i < end) set_bits(row[at + i], element(from, i));
    }
  }
}

template <class B>
__device__ inline float widened_element(const eight<B>& of, int i) {
  return __uint_as_float(element(of, i) << (32 - 8 * sizeof(B)));
}

template <class B>
__device__ inline void widen_eight(const eight<B>& from, float (&to)[8]) {
#pragma unroll
  for (int i = 0; i < 8; ++i) to[i] = widened_element(from, i);
}

template <class B>
__device__ inline void narrow_eight(const float (&from)[8], eight<B>& to) {
#pragma unroll
  for (int i = 0; i < 8; ++i) set_element(to, i, bits_of(narrow<B>(from[i])));
}

// Of a row of f32.
template <bool Aligned>
__device__ inline void load_floats(const float* row, std::int64_t at, std::int64_t end,
                                   float (&to)[8]) {
  eight<float> from;
  load_stored<Aligned>(row, at, end, from);
  widen_eight(from, to);
}

template <bool Aligned>
__device__ inline void store_floats(float* row, std::int64_t at, std::int64_t end,
                                    const float (&from)[8]) {
  eight<float> to;
  narrow_eight(from, to);
  store_stored<Aligned>(row, at, end, to);
}

// This lane's share of the dot product of two parts (number.hpp); ops::fold_warp adds the lanes.
// Columns past the end are zeros, which change no sum. Rows stay as they are stored until here:
// those of bf16 then take half of the registers.
template <class B>
__device__ inline float lane_dot(const eight<B>& a, const float (&b)[8]) {
  float sum = 0.0f;
#pragma unroll
  for (int j = 0; j < 8; ++j) sum = math::add(sum, math::mul(widened_element(a, j), b[j]));
  return sum;
}

}  // namespace reprise::REPRISE_BODIES::sdm
