// The backward of batch_norm on CUDA. The sums over rows take two launches, as layer_norm's do: a
// block of the first sums a chunk of 32 rows for 32 columns, a block of the second what the chunks
// left. The gradients of inputs: blocks of 32 rows for 32 columns, whose statistics a thread loads
// once for its four rows.
#include "reprise/cuda/call.cuh"
#include "reprise/ops/batch_norm_grad.hpp"
#include "reprise/ops/norms.cuh"
#include "reprise/ops/put_sum.cuh"

namespace reprise::REPRISE_BODIES::ops {

namespace {

constexpr int rows_of_thread = norm_chunk_rows / norm_chunk_slots;

// Sums of dy * unit, [chunks, width], and of dy behind them.
__global__ void __launch_bounds__(norm_chunk_slots * 32)
    chunk_sums(read<float> x, read<float> stats, read<float> dy, float* along, float* of_dy,
               std::int64_t rows, std::int64_t width) {
  __shared__ float both[2][norm_chunk_slots][32];
  const std::int64_t column = std::int64_t{blockIdx.y} * 32 + threadIdx.x;
  const std::int64_t first = std::int64_t{blockIdx.x} * norm_chunk_rows + threadIdx.y;
  float of_unit = 0.0f;
  float of_g = 0.0f;
  if (column < width) {
    const float mean = stats.data()[column];
    const float inverse = stats.data()[width + column];
#pragma unroll
    for (int k = 0; k < rows_of_thread; ++k) {
      const std::int64_t row = first + k * norm_chunk_slots;
      if (row >= rows) break;
      const float g = dy.data()[row * width + column];
      const float unit = unit_of(x.data()[row * width + column], mean, inverse);
      of_unit = math::add(of_unit, math::mul(g, unit));
      of_g = math::add(of_g, g);
    }
  }
  both[0][threadIdx.y][threadIdx.x] = of_unit;
  both[1][threadIdx.y][threadIdx.x] = of_g;
  __syncthreads();
  if (threadIdx.y >= 2 || column >= width) return;
  const float sum = fold_chunk(both[threadIdx.y]);
  (threadIdx.y == 0 ? along : of_dy)[blockIdx.x * width + column] = sum;
}

// Block (b, 0) finishes 32 columns of the gain, (b, 1) of the bias.
__global__ void __launch_bounds__(row_slots * 32)
    finish_sums(const float* along, const float* of_dy, write<float> sums, inout<float> dgain,
                inout<float> dbias, read<std::int32_t> gain_rule, read<std::int32_t> bias_rule,
                std::int64_t chunks, std::int64_t width) {
  __shared__ float of_slot[row_slots][32];
  const bool for_gain = blockIdx.y == 0;
  const float* const from = for_gain ? along : of_dy;
  const std::int64_t column = std::int64_t{blockIdx.x} * 32 + threadIdx.x;
  const float sum = sum_of_chunks(of_slot, column < width ? chunks : 0,
                                  [&](std::int64_t chunk) { return from[chunk * width + column]; });
  if (threadIdx.y != 0 || column >= width) return;
  sums.data()[blockIdx.y * width + column] = sum;
  if (gain_rule.size() == 0) return;  // nobody trains them
  const gradient_rule rule = gradient_rule_of(for_gain ? gain_rule.data()[0] : bias_rule.data()[0]);
  if (rule == gradient_rule::leave) return;
  float* const to = for_gain ? dgain.data() : dbias.data();
  put_sum(rule, sum, to[column]);
}

// What is the same for a whole column, and one element.
struct of_input {
  read<float> x, gain, stats, sums, dy;
  write<float> dx;
  std::int64_t rows, width;

  struct column {
    float mean, inverse, scale, mean_g, along;
  };
  __device__ column at(std::int64_t j) const {
    const auto m = static_cast<float>(rows);
    const float inverse = stats.data()[width + j];
    return {stats.data()[j], inverse, math::mul(gain.data()[j], inverse),
            math::div(sums.data()[width + j], m), math::div(sums.data()[j], m)};
  }
  __device__ void form(std::int64_t i, const column& of) const {
    dx.data()[i] = norm_dx(dy.data()[i], unit_of(x.data()[i], of.mean, of.inverse), of.scale,
                           of.mean_g, of.along);
  }
};

struct of_frozen {
  read<float> gain, running, dy;
  write<float> dx;
  std::int64_t rows, width;
  float eps;

  __device__ float at(std::int64_t j) const {
    return math::mul(gain.data()[j], inverse_deviation(running.data()[width + j], eps));
  }
  __device__ void form(std::int64_t i, float scale) const {
    dx.data()[i] = math::mul(dy.data()[i], scale);
  }
};

template <class Of>
__global__ void __launch_bounds__(norm_chunk_slots * 32) input_grad_grid(Of of) {
  const std::int64_t column = std::int64_t{blockIdx.y} * 32 + threadIdx.x;
  if (column >= of.width) return;
  const auto by = of.at(column);
  const std::int64_t first = std::int64_t{blockIdx.x} * norm_chunk_rows + threadIdx.y;
#pragma unroll
  for (int k = 0; k < rows_of_thread; ++k) {
    const std::int64_t row = first + k * norm_chunk_slots;
    if (row >= of.rows) return;
    of.form(row * of.width + column, by);
  }
}

template <class Of>
void form_inputs(cuda_call& call, const Of& of) {
  if (of.rows == 0) return;
  const dim3 blocks{static_cast<unsigned>(norm_chunks(of.rows)),
                    static_cast<unsigned>((of.width + 31) / 32)};
  input_grad_grid<<<blocks, dim3{32, norm_chunk_slots}, 0, call.stream()>>>(of);
}

}  // namespace

void batch_norm_weight_grad_cuda(cuda_call& call, read<float> x, read<float> stats, read<float> dy,
                                 write<float> sums, inout<float> dgain, inout<float> dbias,
                                 read<std::int32_t> gain_rule, read<std::int32_t> bias_rule,
                                 std::int64_t width) {
  const std::int64_t rows =
      batch_norm_weight_grad_rows(x.size(), stats.size(), dy.size(), sums.size(), dgain.size(),
                                  dbias.size(), gain_rule.size(), bias_rule.size(), width);
  const std::int64_t chunks = norm_chunks(rows);
  auto* const along = reinterpret_cast<float*>(call.workspace().data());
  float* const of_dy = along + chunks * width;
  const auto across = static_cast<unsigned>((width + 31) / 32);
  if (chunks > 0) {
    const dim3 blocks{static_cast<unsigned>(chunks), across};
    chunk_sums<<<blocks, dim3{32, norm_chunk_slots}, 0, call.stream()>>>(x, stats, dy, along, of_dy,
                                                                         rows, width);
  }
  finish_sums<<<dim3{across, 2}, dim3{32, row_slots}, 0, call.stream()>>>(
      along, of_dy, sums, dgain, dbias, gain_rule, bias_rule, chunks, width);
}

void batch_norm_input_grad_cuda(cuda_call& call, read<float> x, read<float> gain, read<float> stats,
                                read<float> sums, read<float> dy, write<float> dx,
                                std::int64_t width) {
  const std::int64_t rows = batch_norm_input_grad_rows(x.size(), gain.size(), stats.size(),
                                                       sums.size(), dy.size(), dx.size(), width);
  form_inputs(call, of_input{x, gain, stats, sums, dy, dx, rows, width});
}

void frozen_batch_norm_grad_cuda(cuda_call& call, read<float> gain, read<float> running,
                                 read<float> dy, write<float> dx, std::int64_t width, float eps) {
  const std::int64_t rows =
      frozen_batch_norm_grad_rows(gain.size(), running.size(), dy.size(), dx.size(), width);
  form_inputs(call, of_frozen{gain, running, dy, dx, rows, width, eps});
}

}  // namespace reprise::REPRISE_BODIES::ops
