// Layer norms on CUDA, forwards and backwards, with nothing behind them or an activation: the
// kernels that layer_norm.cu, layer_norm_grad.cu and layer_norm_gelu.cu launch.
//
// Over rows there are two shapes. While all blocks fit a card at once, a block has a row and a
// thread an element: all that a row needs is asked of memory at one time, and every warp adds up
// the row from shared memory by itself, a slot per lane, so that one barrier is enough and nothing
// is unrolled. A launch of 32 rows is the latency of memory once, and of code that is not in any
// cache yet. Else a warp has a row, a slot per lane, and reads it two or three times.
//
// The sums over rows take one launch up to few_norm_chunks chunks: a block sums 32 columns, a
// thread forms the terms of one element of a chunk. Else they take two. A block of the first sums a
// chunk of 32 rows for 32 columns, eight rows at a time, so that a warp reads whole lines: at 512
// rows of 256 these are 128 blocks. A block of the second sums what the chunks left for 32 columns,
// a warp to each slot.
#pragma once

#include <algorithm>
#include <cstdint>

#include "reprise/cuda/call.cuh"
#include "reprise/ops/norms.cuh"
#include "reprise/ops/put_sum.cuh"
#include "reprise/ops/slot_sum.cuh"

namespace reprise::REPRISE_BODIES::ops {

inline constexpr int norm_row_threads = 1024;  // the widest row of a block
inline constexpr int norm_warps = 4;           // of a block, where a warp has a row

// Nothing behind the norm.
struct norm_alone {
  static constexpr bool reads_normed = false;
  __device__ float value(float normed) const { return normed; }
  __device__ float gradient(float, float dy) const { return dy; }
};

// An H200 has 132 processors, for 2,048 threads and 32 blocks each.
inline bool rows_are_few(std::int64_t rows, std::int64_t width) {
  const std::int64_t threads = (width + 31) / 32 * 32;
  return threads <= norm_row_threads && rows <= 132 * std::min<std::int64_t>(32, 2048 / threads);
}

// The sum in slots of `width` elements that lie in shared memory, the same in every lane of every
// warp: term(l) for l below width. Called by whole warps.
template <class Term>
__device__ float sum_of_row(int width, Term&& term) {
  float slot = 0.0f;
#pragma unroll 1
  for (int first = threadIdx.x % 32; first < width; first += 4 * 32) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {  // a zero changes no sum
      const int l = first + 32 * i;
      slot = math::add(slot, l < width ? term(l) : 0.0f);
    }
  }
  return fold_warp(slot);
}

// `stats` is null where nobody keeps them.
template <class Then>
__global__ void __launch_bounds__(norm_row_threads)
    norm_row_grid(read<float> x, read<float> gain, read<float> bias, write<float> y, float* stats,
                  int width, float eps) {
  __shared__ float row[norm_row_threads];
  const int j = threadIdx.x;
  const bool there = j < width;
  const std::int64_t at = std::int64_t{blockIdx.x} * width + j;
  const float mine = there ? x.data()[at] : 0.0f;
  const float my_gain = there ? gain.data()[j] : 0.0f;
  const float my_bias = there ? bias.data()[j] : 0.0f;
  row[j] = mine;
  __syncthreads();
  const auto count = static_cast<float>(width);
  const float mean = math::div(sum_of_row(width, [&](int l) { return row[l]; }), count);
  const float squares = sum_of_row(width, [&](int l) {
    const float off = math::sub(row[l], mean);
    return math::mul(off, off);
  });
  const float inverse = inverse_deviation(math::div(squares, count), eps);
  if (there) y.data()[at] = Then{}.value(norm_y(unit_of(mine, mean, inverse), my_gain, my_bias));
  if (stats != nullptr && j < 2) stats[2 * std::int64_t{blockIdx.x} + j] = j == 0 ? mean : inverse;
}

template <class Then>
__global__ void __launch_bounds__(norm_warps * 32)
    norm_rows_grid(read<float> x, read<float> gain, read<float> bias, write<float> y, float* stats,
                   std::int64_t rows, std::int64_t width, float eps) {
  const std::int64_t row = std::int64_t{blockIdx.x} * norm_warps + threadIdx.x / 32;
  if (row >= rows) return;  // whole warps leave
  const int lane = threadIdx.x % 32;
  const float* const from = x.data() + row * width;
  float* const to = y.data() + row * width;
  const auto count = static_cast<float>(width);

  float slot = 0.0f;
  for (std::int64_t j = lane; j < width; j += 32) slot = math::add(slot, from[j]);
  const float mean = math::div(fold_warp(slot), count);
  slot = 0.0f;
  for (std::int64_t j = lane; j < width; j += 32) {
    const float off = math::sub(from[j], mean);
    slot = math::add(slot, math::mul(off, off));
  }
  const float inverse = inverse_deviation(math::div(fold_warp(slot), count), eps);
  for (std::int64_t j = lane; j < width; j += 32) {
    to[j] = Then{}.value(norm_y(unit_of(from[j], mean, inverse), gain.data()[j], bias.data()[j]));
  }
  if (stats != nullptr && lane < 2) stats[2 * row + lane] = lane == 0 ? mean : inverse;
}

template <class Then>
void launch_norm(cuda_call& call, std::int64_t rows, read<float> x, read<float> gain,
                 read<float> bias, write<float> y, float* stats, std::int64_t width, float eps) {
  if (rows == 0) return;
  if (rows_are_few(rows, width)) {
    const auto threads = static_cast<unsigned>((width + 31) / 32 * 32);
    norm_row_grid<Then><<<static_cast<unsigned>(rows), threads, 0, call.stream()>>>(
        x, gain, bias, y, stats, static_cast<int>(width), eps);
    return;
  }
  const auto blocks = static_cast<unsigned>((rows + norm_warps - 1) / norm_warps);
  norm_rows_grid<Then>
      <<<blocks, norm_warps * 32, 0, call.stream()>>>(x, gain, bias, y, stats, rows, width, eps);
}

// What a backward reads. `bias` is null where Then forms nothing of what the norm wrote.
template <class Then>
struct norm_backward {
  const float* x;
  const float* gain;
  const float* bias;
  const float* stats;
  const float* dy;
  std::int64_t rows, width;

  // The gradient of what the norm wrote, from an element's gain and bias.
  static __device__ float above(float unit, float gain, float bias, float dy) {
    if constexpr (Then::reads_normed) {
      return Then{}.gradient(norm_y(unit, gain, bias), dy);
    } else {
      return dy;
    }
  }
  __device__ float gain_of(std::int64_t j) const { return Then::reads_normed ? gain[j] : 0.0f; }
  __device__ float bias_of(std::int64_t j) const { return Then::reads_normed ? bias[j] : 0.0f; }
};

template <class Then>
__global__ void __launch_bounds__(norm_row_threads)
    norm_row_grad_grid(norm_backward<Then> of, float* dx) {
  __shared__ float of_g[norm_row_threads];
  __shared__ float of_both[norm_row_threads];
  const int j = threadIdx.x;
  const auto width = static_cast<int>(of.width);
  const bool there = j < width;
  const std::int64_t row = blockIdx.x;
  const std::int64_t at = row * width + j;
  const float mean = of.stats[2 * row];
  const float inverse = of.stats[2 * row + 1];
  float unit = 0.0f;
  float g = 0.0f;
  if (there) {
    const float my_gain = of.gain[j];
    const float my_bias = of.bias_of(j);
    const float dy = of.dy[at];
    unit = unit_of(of.x[at], mean, inverse);
    g = math::mul(of.above(unit, my_gain, my_bias, dy), my_gain);
  }
  of_g[j] = g;
  of_both[j] = math::mul(g, unit);
  __syncthreads();
  const auto count = static_cast<float>(width);
  const float mean_g = math::div(sum_of_row(width, [&](int l) { return of_g[l]; }), count);
  const float along = math::div(sum_of_row(width, [&](int l) { return of_both[l]; }), count);
  if (there) dx[at] = norm_dx(g, unit, inverse, mean_g, along);
}

template <class Then>
__global__ void __launch_bounds__(norm_warps * 32)
    norm_rows_grad_grid(norm_backward<Then> of, float* dx) {
  const std::int64_t row = std::int64_t{blockIdx.x} * norm_warps + threadIdx.x / 32;
  if (row >= of.rows) return;  // whole warps leave
  const int lane = threadIdx.x % 32;
  const float* const values = of.x + row * of.width;
  const float* const above = of.dy + row * of.width;
  float* const to = dx + row * of.width;
  const auto count = static_cast<float>(of.width);
  const float mean = of.stats[2 * row];
  const float inverse = of.stats[2 * row + 1];
  const auto g_of = [&](std::int64_t j, float unit) {
    const float gain = of.gain[j];
    return math::mul(of.above(unit, gain, of.bias_of(j), above[j]), gain);
  };

  float of_g = 0.0f;
  float of_both = 0.0f;
  for (std::int64_t j = lane; j < of.width; j += 32) {
    const float unit = unit_of(values[j], mean, inverse);
    const float g = g_of(j, unit);
    of_g = math::add(of_g, g);
    of_both = math::add(of_both, math::mul(g, unit));
  }
  const float mean_g = math::div(fold_warp(of_g), count);
  const float along = math::div(fold_warp(of_both), count);
  for (std::int64_t j = lane; j < of.width; j += 32) {
    const float unit = unit_of(values[j], mean, inverse);
    to[j] = norm_dx(g_of(j, unit), unit, inverse, mean_g, along);
  }
}

template <class Then>
void launch_norm_input_grad(cuda_call& call, const norm_backward<Then>& of, write<float> dx) {
  if (of.rows == 0) return;
  if (rows_are_few(of.rows, of.width)) {
    const auto threads = static_cast<unsigned>((of.width + 31) / 32 * 32);
    norm_row_grad_grid<Then>
        <<<static_cast<unsigned>(of.rows), threads, 0, call.stream()>>>(of, dx.data());
    return;
  }
  const auto blocks = static_cast<unsigned>((of.rows + norm_warps - 1) / norm_warps);
  norm_rows_grad_grid<Then><<<blocks, norm_warps * 32, 0, call.stream()>>>(of, dx.data());
}

// Where the sums over rows go.
struct norm_gradients {
  float* dgain;
  float* dbias;
  const std::int32_t* gain_rule;
  const std::int32_t* bias_rule;

  __device__ gradient_rule rule(bool for_gain) const {
    return gradient_rule_of(for_gain ? *gain_rule : *bias_rule);
  }
  __device__ void put(gradient_rule by, bool for_gain, float sum, std::int64_t column) const {
    if (by != gradient_rule::leave) put_sum(by, sum, (for_gain ? dgain : dbias)[column]);
  }
  __device__ bool both_are_left() const {
    return rule(true) == gradient_rule::leave && rule(false) == gradient_rule::leave;
  }
};

// 32 columns by 32 rows of threads, a chunk at a time. Of at most four chunks, which are slots 0 to
// 3, the sum is (0 + 2) + (1 + 3): the other slots hold zeros, which change no sum.
template <class Then>
__global__ void __launch_bounds__(norm_chunk_rows * 32)
    few_chunks_grid(norm_backward<Then> of, norm_gradients to) {
  static_assert(few_norm_chunks == 4);
  __shared__ float of_gain[norm_chunk_rows][32];
  __shared__ float of_bias[norm_chunk_rows][32];
  const std::int64_t column = std::int64_t{blockIdx.x} * 32 + threadIdx.x;
  const bool there = column < of.width;
  const bool for_gain = threadIdx.y == 0;
  const gradient_rule by = to.rule(for_gain);  // asked of memory along with the rest
  float even = 0.0f;
  float odd = 0.0f;
  const float my_gain = there ? of.gain_of(column) : 0.0f;
  const float my_bias = there ? of.bias_of(column) : 0.0f;
#pragma unroll 1
  for (std::int64_t first = 0; first < of.rows; first += norm_chunk_rows) {
    const std::int64_t row = first + threadIdx.y;
    float g = 0.0f;
    float both = 0.0f;
    if (there && row < of.rows) {
      const std::int64_t at = row * of.width + column;
      const float unit = unit_of(of.x[at], of.stats[2 * row], of.stats[2 * row + 1]);
      g = of.above(unit, my_gain, my_bias, of.dy[at]);
      both = math::mul(g, unit);
    }
    of_gain[threadIdx.y][threadIdx.x] = both;
    of_bias[threadIdx.y][threadIdx.x] = g;
    __syncthreads();
    if (threadIdx.y < 2) {
      const auto& terms = for_gain ? of_gain : of_bias;
      float slots[norm_chunk_slots] = {};
#pragma unroll 1
      for (int at = 0; at < norm_chunk_rows; at += norm_chunk_slots) {
#pragma unroll
        for (int s = 0; s < norm_chunk_slots; ++s) {
          slots[s] = math::add(slots[s], terms[at + s][threadIdx.x]);
        }
      }
      const float sum = fold_slots<norm_chunk_slots>(slots);
      if (first % (2 * norm_chunk_rows) == 0) {
        even = math::add(even, sum);
      } else {
        odd = math::add(odd, sum);
      }
    }
    __syncthreads();  // the next chunk takes the rooms again
  }
  if (threadIdx.y < 2 && there) to.put(by, for_gain, math::add(even, odd), column);
}

// Sums of gains, [chunks, width], and of biases behind them.
template <class Then>
__global__ void __launch_bounds__(norm_chunk_slots * 32)
    norm_chunks_grid(norm_backward<Then> of, norm_gradients to, float* gains, float* biases) {
  if (to.both_are_left()) return;
  __shared__ float of_gain[norm_chunk_slots][32];
  __shared__ float of_bias[norm_chunk_slots][32];
  const std::int64_t column = std::int64_t{blockIdx.y} * 32 + threadIdx.x;
  const std::int64_t first = std::int64_t{blockIdx.x} * norm_chunk_rows;
  float gain = 0.0f;
  float bias = 0.0f;
  const float my_gain = column < of.width ? of.gain_of(column) : 0.0f;
  const float my_bias = column < of.width ? of.bias_of(column) : 0.0f;
#pragma unroll
  for (int at = 0; at < norm_chunk_rows; at += norm_chunk_slots) {
    const std::int64_t row = first + at + threadIdx.y;
    if (row < of.rows && column < of.width) {
      const std::int64_t element = row * of.width + column;
      const float unit = unit_of(of.x[element], of.stats[2 * row], of.stats[2 * row + 1]);
      const float g = of.above(unit, my_gain, my_bias, of.dy[element]);
      gain = math::add(gain, math::mul(g, unit));
      bias = math::add(bias, g);
    }
  }
  of_gain[threadIdx.y][threadIdx.x] = gain;
  of_bias[threadIdx.y][threadIdx.x] = bias;
  __syncthreads();
  if (threadIdx.y >= 2 || column >= of.width) return;
  const bool for_gain = threadIdx.y == 0;
  const float sum = fold_chunk(for_gain ? of_gain : of_bias);
  (for_gain ? gains : biases)[blockIdx.x * of.width + column] = sum;
}

// Block (b, 0) finishes 32 columns of the gain, (b, 1) of the bias.
template <class Sums>
__global__ void __launch_bounds__(row_slots * 32)
    finish_norm_grid(const float* gains, const float* biases, Sums to, std::int64_t chunks,
                     std::int64_t width) {
  __shared__ float of_slot[row_slots][32];
  const bool for_gain = blockIdx.y == 0;
  const gradient_rule by = to.rule(for_gain);
  if (by == gradient_rule::leave) return;
  const float* const from = for_gain ? gains : biases;
  const std::int64_t column = std::int64_t{blockIdx.x} * 32 + threadIdx.x;
  const float sum = sum_of_chunks(of_slot, column < width ? chunks : 0,
                                  [&](std::int64_t chunk) { return from[chunk * width + column]; });
  if (threadIdx.y == 0 && column < width) to.put(by, for_gain, sum, column);
}

template <class Then>
void launch_norm_weight_grad(cuda_call& call, const norm_backward<Then>& of,
                             const norm_gradients& to) {
  const std::int64_t chunks = norm_chunks(of.rows);
  const auto across = static_cast<unsigned>((of.width + 31) / 32);
  if (chunks <= few_norm_chunks) {
    few_chunks_grid<Then><<<across, dim3{32, norm_chunk_rows}, 0, call.stream()>>>(of, to);
    return;
  }
  auto* const gains = reinterpret_cast<float*>(call.workspace().data());
  float* const biases = gains + chunks * of.width;
  const dim3 blocks{static_cast<unsigned>(chunks), across};
  norm_chunks_grid<Then>
      <<<blocks, dim3{32, norm_chunk_slots}, 0, call.stream()>>>(of, to, gains, biases);
  finish_norm_grid<<<dim3{across, 2}, dim3{32, row_slots}, 0, call.stream()>>>(gains, biases, to,
                                                                               chunks, of.width);
}

}  // namespace reprise::REPRISE_BODIES::ops
