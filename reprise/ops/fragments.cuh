// What a warp multiplies: pieces of eight neighbouring elements of a row, as tensor core operands.
//
// One mma of 16 columns by 8 rows by 16 k takes bf16 operands; each product is exact in f32. A
// float is the exact sum of three bf16 (its upper 8 bits, the next 8, the rest), so the same
// instruction serves f32 operands: the product of two floats is taken as the six products of parts
// that matter to f32, those of order below three.
//
// Which k of a piece goes where in an operand is free, as long as both operands agree: a lane reads
// eight neighbours in 16 bytes (of bf16) and gives them to two mma.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "reprise/base/dtype.hpp"

namespace reprise::REPRISE_BODIES::ops {

// Eight elements as they are stored.
template <class T>
struct piece {
  std::uint32_t words[2 * sizeof(T)];
};

// Weights pass through once: they are not kept in L1, which is for the rows of x.
template <bool KeepInL1>
__device__ inline uint4 load_16_bytes(const void* from) {
  uint4 v;
  if constexpr (KeepInL1) {
    asm("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
        : "l"(from));
  } else {
    asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
        : "l"(from));
  }
  return v;
}

__device__ inline void put_bits(piece<float>& to, int i, float x) {
  to.words[i] = __float_as_uint(x);
}
__device__ inline void put_bits(piece<bf16>& to, int i, bf16 x) {
  to.words[i / 2] |= static_cast<std::uint32_t>(x.bits) << (16 * (i % 2));
}

// Elements [at, at + 8) of a row of k; zeros past its end. With Whole, k is a multiple of eight and
// rows begin at multiples of 16 bytes. The piece is the same either way.
template <bool Whole, bool KeepInL1, class T>
__device__ inline void load_piece(const T* row, std::int64_t at, std::int64_t k, piece<T>& to) {
#pragma unroll
  for (int i = 0; i < static_cast<int>(2 * sizeof(T)); ++i) to.words[i] = 0;
  if constexpr (Whole) {
    if (at < k) {
#pragma unroll
      for (int i = 0; i < static_cast<int>(sizeof(T) / 2); ++i) {
        const uint4 v = load_16_bytes<KeepInL1>(row + at + i * 4);
        to.words[4 * i] = v.x;
        to.words[4 * i + 1] = v.y;
        to.words[4 * i + 2] = v.z;
        to.words[4 * i + 3] = v.w;
      }
    }
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (at + i < k) put_bits(to, i, row[at + i]);
    }
  }
}

// Eight elements as the sum of bf16 parts, two neighbours to a word.
template <class T>
struct fragment;
template <>
struct fragment<bf16> {
  static constexpr int parts = 1;
  std::uint32_t words[parts][4];
};
template <>
struct fragment<float> {
  static constexpr int parts = 3;
  std::uint32_t words[parts][4];
};

__device__ inline void take_apart(const piece<bf16>& from, fragment<bf16>& to) {
#pragma unroll
  for (int i = 0; i < 4; ++i) to.words[0][i] = from.words[i];
}

__device__ inline void take_apart(const piece<float>& from, fragment<float>& to) {
  constexpr std::uint32_t upper = 0xffff0000u;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    float first = __uint_as_float(from.words[2 * i]);
    float second = __uint_as_float(from.words[2 * i + 1]);
#pragma unroll
    for (int part = 0; part < 3; ++part) {
      const std::uint32_t a = __float_as_uint(first) & upper;
      const std::uint32_t b = __float_as_uint(second) & upper;
      to.words[part][i] = (a >> 16) | b;  // little endian: the first of a pair is the lower half
      first = __fsub_rn(first, __uint_as_float(a));  // exact
      second = __fsub_rn(second, __uint_as_float(b));
    }
  }
}

// sums += the products of a piece of each of two rows of `a` (g and g + 8 of lane 4 g + t) with a
// piece of row g of `b`, over the whole warp. sums: rows g, g, g + 8, g + 8 of a with rows 2t,
// 2t + 1, 2t, 2t + 1 of b. (PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type".)
template <class W, class A>
__device__ inline void multiply_add(float (&sums)[4], const fragment<W>& a_low,
                                    const fragment<W>& a_high, const fragment<A>& b) {
#pragma unroll
  for (int half = 0; half < 4; half += 2) {
#pragma unroll
    for (int order = 0; order < 3; ++order) {
#pragma unroll
      for (int i = 0; i <= order; ++i) {
        const int j = order - i;
        if (i >= fragment<W>::parts || j >= fragment<A>::parts) continue;
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
            : "r"(a_low.words[i][half]), "r"(a_high.words[i][half]), "r"(a_low.words[i][half + 1]),
              "r"(a_high.words[i][half + 1]), "r"(b.words[j][half]), "r"(b.words[j][half + 1]));
      }
    }
  }
}

}  // namespace reprise::REPRISE_BODIES::ops
