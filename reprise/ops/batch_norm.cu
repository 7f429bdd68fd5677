// batch_norm on CUDA, in three launches: what each chunk of 32 rows has of 32 columns, its squares
// from registers, in blocks of eight rows at a time, so that a warp reads whole lines; then a block
// for 32 columns, which combines the chunks and moves the running statistics; then y, in blocks as
// the first. frozen_batch_norm is the last of them, by the running statistics.
#include "reprise/cuda/call.cuh"
#include "reprise/ops/batch_norm.hpp"
#include "reprise/ops/norms.cuh"

namespace reprise::REPRISE_BODIES::ops {

namespace {

constexpr int rows_of_thread = norm_chunk_rows / norm_chunk_slots;

// Sums, [chunks, width], and squares behind them.
__global__ void __launch_bounds__(norm_chunk_slots * 32)
    moments_of_chunks(read<float> x, float* sums, float* squares, std::int64_t rows,
                      std::int64_t width) {
  __shared__ float of_sum[norm_chunk_slots][32];
  __shared__ float of_squares[norm_chunk_slots][32];
  const std::int64_t column = std::int64_t{blockIdx.y} * 32 + threadIdx.x;
  const std::int64_t first = std::int64_t{blockIdx.x} * norm_chunk_rows;
  const auto is_mine = [&](int k) {
    return column < width && first + k * norm_chunk_slots + threadIdx.y < rows;
  };
  float values[rows_of_thread];
  float slot = 0.0f;
#pragma unroll
  for (int k = 0; k < rows_of_thread; ++k) {
    if (!is_mine(k)) continue;
    values[k] = x.data()[(first + k * norm_chunk_slots + threadIdx.y) * width + column];
    slot = math::add(slot, values[k]);
  }
  of_sum[threadIdx.y][threadIdx.x] = slot;
  __syncthreads();
  const float sum = fold_chunk(of_sum);
  const float mean = math::div(sum, static_cast<float>(rows_of_chunk(first, rows)));
  slot = 0.0f;
#pragma unroll
  for (int k = 0; k < rows_of_thread; ++k) {
    if (!is_mine(k)) continue;
    const float off = math::sub(values[k], mean);
    slot = math::add(slot, math::mul(off, off));
  }
  of_squares[threadIdx.y][threadIdx.x] = slot;
  __syncthreads();
  if (threadIdx.y != 0 || column >= width) return;
  sums[blockIdx.x * width + column] = sum;
  squares[blockIdx.x * width + column] = fold_chunk(of_squares);
}

__global__ void __launch_bounds__(row_slots * 32)
    finish_moments(const float* sums, const float* squares, inout<float> running,
                   write<float> stats, std::int64_t rows, std::int64_t width, float eps,
                   float momentum) {
  __shared__ float of_sum[row_slots][32];
  __shared__ float of_squares[row_slots][32];
  __shared__ float means[32];
  const std::int64_t column = std::int64_t{blockIdx.x} * 32 + threadIdx.x;
  const std::int64_t chunks = column < width ? norm_chunks(rows) : 0;
  const auto m = static_cast<float>(rows);
  const float sum = sum_of_chunks(of_sum, chunks,
                                  [&](std::int64_t chunk) { return sums[chunk * width + column]; });
  if (threadIdx.y == 0) means[threadIdx.x] = math::div(sum, m);
  __syncthreads();
  const float mean = means[threadIdx.x];
  const float square = sum_of_chunks(of_squares, chunks, [&](std::int64_t chunk) {
    const auto count = static_cast<float>(rows_of_chunk(chunk * norm_chunk_rows, rows));
    const std::int64_t at = chunk * width + column;
    return squares_of_chunk(sums[at], squares[at], count, mean);
  });
  if (threadIdx.y != 0 || column >= width) return;
  float& running_mean = running.data()[column];
  float& running_variance = running.data()[width + column];
  running_mean = moved_towards(running_mean, mean, momentum);
  running_variance =
      moved_towards(running_variance, math::div(square, math::sub(m, 1.0f)), momentum);
  stats.data()[column] = mean;
  stats.data()[width + column] = inverse_deviation(math::div(square, m), eps);
}

// By statistics of columns: `second` has inverse deviations, or variances where an eps is given.
struct by_stats {
  const float* means;
  const float* second;
  __device__ float inverse(std::int64_t column) const { return second[column]; }
};
struct by_running {
  const float* means;
  const float* second;
  float eps;
  __device__ float inverse(std::int64_t column) const {
    return inverse_deviation(second[column], eps);
  }
};

template <class By>
__global__ void __launch_bounds__(norm_chunk_slots * 32)
    norm_grid(read<float> x, read<float> gain, read<float> bias, write<float> y, By by,
              std::int64_t rows, std::int64_t width) {
  const std::int64_t column = std::int64_t{blockIdx.y} * 32 + threadIdx.x;
  if (column >= width) return;
  const float mean = by.means[column];
  const float inverse = by.inverse(column);
  const float times = gain.data()[column];
  const float plus = bias.data()[column];
  const std::int64_t first = std::int64_t{blockIdx.x} * norm_chunk_rows + threadIdx.y;
#pragma unroll
  for (int k = 0; k < rows_of_thread; ++k) {
    const std::int64_t row = first + k * norm_chunk_slots;
    if (row >= rows) return;
    const std::int64_t at = row * width + column;
    y.data()[at] = norm_y(unit_of(x.data()[at], mean, inverse), times, plus);
  }
}

struct geometry {
  unsigned across;
  dim3 blocks;
  dim3 threads{32, norm_chunk_slots};

  geometry(std::int64_t rows, std::int64_t width)
      : across{static_cast<unsigned>((width + 31) / 32)},
        blocks{static_cast<unsigned>(norm_chunks(rows)), across} {}
};

}  // namespace

void batch_norm_cuda(cuda_call& call, read<float> x, read<float> gain, read<float> bias,
                     inout<float> running, write<float> y, write<float> stats, std::int64_t width,
                     float eps, float momentum) {
  const std::int64_t rows = batch_norm_rows(x.size(), gain.size(), bias.size(), running.size(),
                                            y.size(), stats.size(), width);
  auto* const sums = reinterpret_cast<float*>(call.workspace().data());
  float* const squares = sums + norm_chunks(rows) * width;
  const geometry grid{rows, width};
  moments_of_chunks<<<grid.blocks, grid.threads, 0, call.stream()>>>(x, sums, squares, rows, width);
  finish_moments<<<grid.across, dim3{32, row_slots}, 0, call.stream()>>>(
      sums, squares, running, stats, rows, width, eps, momentum);
  norm_grid<<<grid.blocks, grid.threads, 0, call.stream()>>>(
      x, gain, bias, y, by_stats{stats.data(), stats.data() + width}, rows, width);
}

void frozen_batch_norm_cuda(cuda_call& call, read<float> x, read<float> gain, read<float> bias,
                            read<float> running, write<float> y, std::int64_t width, float eps) {
  const std::int64_t rows =
      frozen_batch_norm_rows(x.size(), gain.size(), bias.size(), running.size(), y.size(), width);
  if (rows == 0) return;
  const geometry grid{rows, width};
  norm_grid<<<grid.blocks, grid.threads, 0, call.stream()>>>(
      x, gain, bias, y, by_running{running.data(), running.data() + width, eps}, rows, width);
}

}  // namespace reprise::REPRISE_BODIES::ops
