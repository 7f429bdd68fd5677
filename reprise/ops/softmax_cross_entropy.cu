// softmax_cross_entropy on CUDA: one warp per row, a slot per lane, then one block for the sum of
// the rows; its gradient, one warp per row.
//
// For some hundred classes: a row is read twice or three times, all but the first from L1. A
// vocabulary of 100,000 keeps a warp busy for long; nothing here trains one.
#include "reprise/cuda/call.cuh"
#include "reprise/ops/slot_sum.cuh"
#include "reprise/ops/softmax_cross_entropy.hpp"

namespace reprise::REPRISE_BODIES::ops {

namespace {

constexpr int warps = 4;

struct softmax_row {
  float top;
  float sum;
};

// The same in every lane of a warp.
__device__ softmax_row softmax_of(const float* logits, std::int64_t classes, int lane) {
  float top = minus_infinity;
  for (std::int64_t j = lane; j < classes; j += 32) top = greater_of(top, logits[j]);
#pragma unroll
  for (int half = 16; half > 0; half /= 2) {
    top = greater_of(top, __shfl_xor_sync(0xffffffffu, top, half));
  }
  float slot = 0.0f;
  for (std::int64_t j = lane; j < classes; j += 32) {
    slot = math::add(slot, math::exp(math::sub(logits[j], top)));
  }
  return {top, fold_warp(slot)};
}

__global__ void __launch_bounds__(warps * 32)
    loss_of_rows(read<float> logits, read<std::int32_t> targets, float* losses,
                 std::int64_t classes) {
  const std::int64_t i = std::int64_t{blockIdx.x} * warps + threadIdx.x / 32;
  if (i >= static_cast<std::int64_t>(targets.size())) return;  // whole warps leave
  const int lane = threadIdx.x % 32;
  const std::int32_t target = targets.data()[i];
  float loss = target < 0 ? 0.0f : not_a_number;
  if (target >= 0 && target < classes) {
    const float* const from = logits.data() + i * classes;
    const softmax_row row = softmax_of(from, classes, lane);
    loss = row_loss(row.top, row.sum, from[target]);
  }
  if (lane == 0) losses[i] = loss;
}

__global__ void __launch_bounds__(total_slots)
    mean_of_rows(const float* losses, read<std::int32_t> targets, write<float> loss,
                 write<float> counted) {
  __shared__ unsigned long long count;
  const auto rows = static_cast<std::int64_t>(targets.size());
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  unsigned mine = 0;
#pragma unroll 4
  for (std::int64_t i = threadIdx.x; i < rows; i += total_slots) mine += targets.data()[i] >= 0;
  const unsigned of_warp = __reduce_add_sync(0xffffffffu, mine);
  if (threadIdx.x % 32 == 0) atomicAdd(&count, of_warp);
  // Behind the barrier within, the count is whole.
  const float sum = block_sum(rows, [&](std::int64_t i) { return losses[i]; });
  if (threadIdx.x != 0) return;
  loss.data()[0] = count == 0 ? 0.0f : math::div(sum, static_cast<float>(count));
  counted.data()[0] = static_cast<float>(count);
}

__global__ void __launch_bounds__(warps * 32)
    gradient_of_rows(read<float> logits, read<std::int32_t> targets, read<float> counted,
                     read<float> dloss, write<float> dlogits, std::int64_t classes) {
  const std::int64_t i = std::int64_t{blockIdx.x} * warps + threadIdx.x / 32;
  if (i >= static_cast<std::int64_t>(targets.size())) return;  // whole warps leave
  const int lane = threadIdx.x % 32;
  const float* const from = logits.data() + i * classes;
  float* const to = dlogits.data() + i * classes;
  const std::int32_t target = targets.data()[i];
  if (target < 0 || target >= classes) {
    const float value = target < 0 ? 0.0f : not_a_number;
    for (std::int64_t j = lane; j < classes; j += 32) to[j] = value;
    return;
  }
  const softmax_row row = softmax_of(from, classes, lane);
  const float scale = math::div(dloss.data()[0], counted.data()[0]);
  for (std::int64_t j = lane; j < classes; j += 32) {
    const float share = probability<float>(from[j], row.top, row.sum);
    to[j] = math::mul(j == target ? math::sub(share, 1.0f) : share, scale);
  }
}

unsigned blocks_for(std::int64_t rows) {
  return static_cast<unsigned>((rows + warps - 1) / warps);
}

}  // namespace

void softmax_cross_entropy_cuda(cuda_call& call, read<float> logits, read<std::int32_t> targets,
                                write<float> loss, write<float> counted, std::int64_t classes) {
  const std::int64_t rows =
      cross_entropy_rows(logits.size(), targets.size(), loss.size(), counted.size(), classes);
  auto* const losses = reinterpret_cast<float*>(call.workspace().data());
  if (rows > 0) {
    loss_of_rows<<<blocks_for(rows), warps * 32, 0, call.stream()>>>(logits, targets, losses,
                                                                     classes);
  }
  mean_of_rows<<<1, total_slots, 0, call.stream()>>>(losses, targets, loss, counted);
}

void softmax_cross_entropy_grad_cuda(cuda_call& call, read<float> logits,
                                     read<std::int32_t> targets, read<float> counted,
                                     read<float> dloss, write<float> dlogits,
                                     std::int64_t classes) {
  const std::int64_t rows = cross_entropy_grad_rows(logits.size(), targets.size(), counted.size(),
                                                    dloss.size(), dlogits.size(), classes);
  if (rows == 0) return;
  gradient_of_rows<<<blocks_for(rows), warps * 32, 0, call.stream()>>>(logits, targets, counted,
                                                                       dloss, dlogits, classes);
}

}  // namespace reprise::REPRISE_BODIES::ops
