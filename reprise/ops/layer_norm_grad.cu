// The backward of layer_norm on CUDA. dx: one warp per row, a slot per lane, as in the forward.
//
// The sums over rows take two launches. A block of the first sums a chunk of 32 rows for 32
// columns, eight rows at a time, so that a warp reads whole lines: at 512 rows of 256 these are 128
// blocks. A block of the second sums what the chunks left for 32 columns, a warp to each slot.
#include "reprise/cuda/call.cuh"
#include "reprise/ops/layer_norm_grad.hpp"
#include "reprise/ops/norms.cuh"
#include "reprise/ops/put_sum.cuh"
#include "reprise/ops/slot_sum.cuh"

namespace reprise::REPRISE_BODIES::ops {

namespace {

constexpr int warps = 4;

__global__ void __launch_bounds__(warps * 32)
    input_grad_grid(read<float> x, read<float> gain, read<float> stats, read<float> dy,
                    write<float> dx, std::int64_t rows, std::int64_t width) {
  const std::int64_t row = std::int64_t{blockIdx.x} * warps + threadIdx.x / 32;
  if (row >= rows) return;  // whole warps leave
  const int lane = threadIdx.x % 32;
  const float* const values = x.data() + row * width;
  const float* const above = dy.data() + row * width;
  float* const to = dx.data() + row * width;
  const auto count = static_cast<float>(width);
  const float mean = stats.data()[2 * row];
  const float inverse = stats.data()[2 * row + 1];

  float of_g = 0.0f;
  float of_both = 0.0f;
  for (std::int64_t j = lane; j < width; j += 32) {
    const float g = math::mul(above[j], gain.data()[j]);
    of_g = math::add(of_g, g);
    of_both = math::add(of_both, math::mul(g, unit_of(values[j], mean, inverse)));
  }
  const float mean_g = math::div(fold_warp(of_g), count);
  const float along = math::div(fold_warp(of_both), count);
  for (std::int64_t j = lane; j < width; j += 32) {
    const float g = math::mul(above[j], gain.data()[j]);
    to[j] = norm_dx(g, unit_of(values[j], mean, inverse), inverse, mean_g, along);
  }
}

// Sums of gains, [chunks, width], and of biases behind them.
__global__ void __launch_bounds__(norm_chunk_slots * 32)
    chunk_sums(read<float> x, read<float> stats, read<float> dy, read<std::int32_t> gain_rule,
               read<std::int32_t> bias_rule, float* gains, float* biases, std::int64_t rows,
               std::int64_t width) {
  if (gradient_rule_of(gain_rule.data()[0]) == gradient_rule::leave &&
      gradient_rule_of(bias_rule.data()[0]) == gradient_rule::leave) {
    return;
  }
  __shared__ float of_gain[norm_chunk_slots][32];
  __shared__ float of_bias[norm_chunk_slots][32];
  const std::int64_t column = std::int64_t{blockIdx.y} * 32 + threadIdx.x;
  const std::int64_t first = std::int64_t{blockIdx.x} * norm_chunk_rows;
  float gain = 0.0f;
  float bias = 0.0f;
#pragma unroll
  for (int at = 0; at < norm_chunk_rows; at += norm_chunk_slots) {
    const std::int64_t row = first + at + threadIdx.y;
    if (row < rows && column < width) {
      const float g = dy.data()[row * width + column];
      const float unit =
          unit_of(x.data()[row * width + column], stats.data()[2 * row], stats.data()[2 * row + 1]);
      gain = math::add(gain, math::mul(g, unit));
      bias = math::add(bias, g);
    }
  }
  of_gain[threadIdx.y][threadIdx.x] = gain;
  of_bias[threadIdx.y][threadIdx.x] = bias;
  __syncthreads();
  if (threadIdx.y >= 2 || column >= width) return;
  const bool for_gain = threadIdx.y == 0;
  const float sum = fold_chunk(for_gain ? of_gain : of_bias);
  (for_gain ? gains : biases)[blockIdx.x * width + column] = sum;
}

// Block (b, 0) finishes 32 columns of the gain, (b, 1) of the bias.
__global__ void __launch_bounds__(row_slots * 32)
    finish_sums(const float* gains, const float* biases, inout<float> dgain, inout<float> dbias,
                read<std::int32_t> gain_rule, read<std::int32_t> bias_rule, std::int64_t chunks,
                std::int64_t width) {
  __shared__ float of_slot[row_slots][32];
  const bool for_gain = blockIdx.y == 0;
  const gradient_rule rule = gradient_rule_of(for_gain ? gain_rule.data()[0] : bias_rule.data()[0]);
  if (rule == gradient_rule::leave) return;
  const float* const from = for_gain ? gains : biases;
  const std::int64_t column = std::int64_t{blockIdx.x} * 32 + threadIdx.x;
  const float sum = sum_of_chunks(of_slot, column < width ? chunks : 0,
                                  [&](std::int64_t chunk) { return from[chunk * width + column]; });
  if (threadIdx.y != 0 || column >= width) return;
  put_sum(rule, sum, (for_gain ? dgain : dbias).data()[column]);
}

}  // namespace

void layer_norm_input_grad_cuda(cuda_call& call, read<float> x, read<float> gain, read<float> stats,
                                read<float> dy, write<float> dx, std::int64_t width) {
  const std::int64_t rows =
      layer_norm_input_grad_rows(x.size(), gain.size(), stats.size(), dy.size(), dx.size(), width);
  if (rows == 0) return;
  const auto blocks = static_cast<unsigned>((rows + warps - 1) / warps);
  input_grad_grid<<<blocks, warps * 32, 0, call.stream()>>>(x, gain, stats, dy, dx, rows, width);
}

void layer_norm_weight_grad_cuda(cuda_call& call, read<float> x, read<float> stats, read<float> dy,
                                 inout<float> dgain, inout<float> dbias,
                                 read<std::int32_t> gain_rule, read<std::int32_t> bias_rule,
                                 std::int64_t width) {
  const std::int64_t rows =
      layer_norm_weight_grad_rows(x.size(), stats.size(), dy.size(), dgain.size(), dbias.size(),
                                  gain_rule.size(), bias_rule.size(), width);
  const std::int64_t chunks = norm_chunks(rows);
  auto* const gains = reinterpret_cast<float*>(call.workspace().data());
  float* const biases = gains + chunks * width;
  const auto across = static_cast<unsigned>((width + 31) / 32);
  if (chunks > 0) {
    const dim3 blocks{static_cast<unsigned>(chunks), across};
    chunk_sums<<<blocks, dim3{32, norm_chunk_slots}, 0, call.stream()>>>(
        x, stats, dy, gain_rule, bias_rule, gains, biases, rows, width);
  }
  finish_sums<<<dim3{across, 2}, dim3{32, row_slots}, 0, call.stream()>>>(
      gains, biases, dgain, dbias, gain_rule, bias_rule, chunks, width);
}

}  // namespace reprise::REPRISE_BODIES::ops
