// A product of few outputs and a short sum, of f32 operands, on CUDA: what linear.cu launches where
// a product is the latency of memory and of cold code, and not arithmetic.
//
// A block has Tile by Tile outputs. It asks memory for all terms of Parts parts of the sum (64
// terms each) at one time, by copies into shared memory that hold no registers, so that the loop
// around them need not be unrolled; then a thread has an output and a part. At 32 rows of 256 by
// 256 that is one trip to memory, by 128 blocks; tiles whose sums go on slab by slab take four, by
// 32 blocks, and four times the code.
//
// The order of a sum is that of linear.hpp, and what stands behind the end of a part, zeros up to a
// multiple of 16 terms, is what linear.cu has there: the bits are the same.
#pragma once

#include <cuda_pipeline.h>

#include <cstdint>

#include "reprise/ops/linear.hpp"
#include "reprise/ops/put_sum.cuh"

namespace reprise::REPRISE_BODIES::ops {

// A matrix of `lines` by the depth of the sum: where an element lies.
template <class A>
struct operand {
  const A* data;
  std::int64_t lines;
  std::int64_t line_stride;  // in elements; one of the two strides is 1
  std::int64_t depth_stride;
};

template <class A>
struct product {
  operand<A> a;  // its lines are rows of the output
  operand<A> b;  // its lines are columns
  std::int64_t depth;
  float* to;
  const float* bias;         // null: none
  const std::int32_t* rule;  // null: write
  bool tf32;
};

// Where the sums of the left operand's lines go, with those of the product: of the gradient of a
// bias, beside that of its weights.
struct sums_of_rows {
  float* to = nullptr;
  const std::int32_t* rule = nullptr;
};

inline constexpr int padded_terms = 16;  // a part is zeros up to a multiple of these

template <int Tile, int Parts>
struct small_tiling {
  static constexpr int outputs = Tile * Tile;
  static constexpr int threads = outputs * Parts;
  static constexpr int terms = static_cast<int>(sum_part) * Parts;  // of a round
  static constexpr int stride = static_cast<int>(sum_part) + 4;     // of a line: 4 more, for banks
  static constexpr int room = Parts * Tile * stride;
};

// Element `term` of line `line` of a round.
template <int Tile>
__device__ inline int small_place(int line, int term) {
  constexpr int part = static_cast<int>(sum_part);
  return (term / part * Tile + line) * (part + 4) + term % part;
}

// Asks for the terms from `begin` on, of the tile's lines; zeros past either end.
template <int Tile, int Parts>
__device__ void ask_for(const operand<float>& from, std::int64_t first_line, std::int64_t begin,
                        std::int64_t depth, float* to) {
  using shape = small_tiling<Tile, Parts>;
  static_assert(shape::threads % shape::terms == 0 && shape::threads % Tile == 0);
  const bool along_depth = from.depth_stride == 1;
  const auto terms_left = static_cast<int>(min(depth - begin, std::int64_t{shape::terms}));
  const auto lines_left = static_cast<int>(min(from.lines - first_line, std::int64_t{Tile}));
  const int asked = (terms_left + padded_terms - 1) / padded_terms * padded_terms;
  const int thread = threadIdx.x;
  int line = along_depth ? thread / shape::terms : thread % Tile;
  int term = along_depth ? thread % shape::terms : thread / Tile;
  const int line_step = along_depth ? shape::threads / shape::terms : 0;
  const int term_step = along_depth ? 0 : shape::threads / Tile;
  const float* at =
      from.data + (first_line + line) * from.line_stride + (begin + term) * from.depth_stride;
  const std::int64_t step = line_step * from.line_stride + term_step * from.depth_stride;
#pragma unroll 1
  for (; line < Tile && term < asked; line += line_step, term += term_step, at += step) {
    float* const there = to + small_place<Tile>(line, term);
    if (line < lines_left && term < terms_left) {
      __pipeline_memcpy_async(there, at, sizeof(float));
    } else {
      *there = 0.0f;
    }
  }
}

// With SumsRows the first block of a row of blocks also sums the lines of the left operand, in the
// same order, a thread each.
template <int Tile, int Parts, bool SumsRows>
__global__ void __launch_bounds__(small_tiling<Tile, Parts>::threads)
    small_product_grid(product<float> p, sums_of_rows of_rows) {
  static_assert(!SumsRows || Parts == 1);
  using shape = small_tiling<Tile, Parts>;
  constexpr int part_terms = static_cast<int>(sum_part);
  __shared__ __align__(16) float left[shape::room];
  __shared__ __align__(16) float right[shape::room];
  __shared__ float sums[shape::threads];

  const int output = threadIdx.x % shape::outputs;
  const int part = threadIdx.x / shape::outputs;
  const int r = output / Tile;
  const int c = output % Tile;
  const std::int64_t first_row = std::int64_t{blockIdx.x} * Tile;
  const std::int64_t first_column = std::int64_t{blockIdx.y} * Tile;
  const std::int64_t row = first_row + r;
  const std::int64_t column = first_column + c;
  const bool puts = part == 0 && row < p.a.lines && column < p.b.lines;

  const bool sums_row = SumsRows && blockIdx.y == 0 && c == 0;
  float of_row_total = 0.0f;
  float total = 0.0f;  // of the threads of part 0
  float bias = 0.0f;
  gradient_rule rule = gradient_rule::write;
#pragma unroll 1
  for (std::int64_t round = 0; round < p.depth; round += shape::terms) {
    ask_for<Tile, Parts>(p.a, first_row, round, p.depth, left);
    ask_for<Tile, Parts>(p.b, first_column, round, p.depth, right);
    __pipeline_commit();
    if (round == 0) {  // asked for along with the first terms
      if (p.rule != nullptr) rule = gradient_rule_of(*p.rule);
      if (p.bias != nullptr && puts) bias = p.bias[column];
    }
    __pipeline_wait_prior(0);
    __syncthreads();
    if (p.tf32) {
#pragma unroll 1
      for (int e = threadIdx.x; e < shape::room; e += shape::threads) {
        left[e] = rounded_to_tf32(left[e]);
        right[e] = rounded_to_tf32(right[e]);
      }
      __syncthreads();
    }
    const float4* const of_row =
        reinterpret_cast<const float4*>(left + (part * Tile + r) * shape::stride);
    const float4* const of_column =
        reinterpret_cast<const float4*>(right + (part * Tile + c) * shape::stride);
    const auto here =
        static_cast<int>(min(p.depth - round - part * sum_part, std::int64_t{part_terms}));
    float sum = 0.0f;
#pragma unroll 1
    for (int l = 0; l < here; l += padded_terms) {
#pragma unroll
      for (int i = 0; i < padded_terms / 4; ++i) {
        const float4 a = of_row[l / 4 + i];
        const float4 b = of_column[l / 4 + i];
        sum = __fmaf_rn(a.x, b.x, sum);
        sum = __fmaf_rn(a.y, b.y, sum);
        sum = __fmaf_rn(a.z, b.z, sum);
        sum = __fmaf_rn(a.w, b.w, sum);
      }
    }
    if constexpr (SumsRows) {
      if (sums_row) {
        float of_line = 0.0f;
#pragma unroll 1
        for (int l = 0; l < here; l += padded_terms) {
#pragma unroll
          for (int i = 0; i < padded_terms / 4; ++i) {
            const float4 a = of_row[l / 4 + i];
            of_line = __fadd_rn(of_line, a.x);
            of_line = __fadd_rn(of_line, a.y);
            of_line = __fadd_rn(of_line, a.z);
            of_line = __fadd_rn(of_line, a.w);
          }
        }
        of_row_total = __fadd_rn(of_row_total, of_line);
      }
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (part == 0) {
      const auto parts = static_cast<int>(
          min(std::int64_t{Parts}, (p.depth - round + part_terms - 1) / part_terms));
#pragma unroll
      for (int g = 0; g < Parts; ++g) {
        if (g < parts) total = __fadd_rn(total, sums[g * shape::outputs + output]);
      }
    }
    __syncthreads();  // the next round takes the rooms again
  }
  if (p.depth == 0) {  // a sum of nothing
    if (p.rule != nullptr) rule = gradient_rule_of(*p.rule);
    if (p.bias != nullptr && puts) bias = p.bias[column];
  }
  if constexpr (SumsRows) {
    if (sums_row && row < p.a.lines) {
      const gradient_rule by = gradient_rule_of(*of_rows.rule);
      if (by != gradient_rule::leave) put_sum(by, of_row_total, of_rows.to[row]);
    }
  }
  if (!puts || rule == gradient_rule::leave) return;
  if (p.bias != nullptr) total = __fadd_rn(total, bias);
  put_sum(rule, total, p.to[row * p.b.lines + column]);
}

}  // namespace reprise::REPRISE_BODIES::ops
