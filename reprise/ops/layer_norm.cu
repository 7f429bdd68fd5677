// layer_norm on CUDA: one warp per row, a slot per lane.
//
// A row is read three times, the second and third time from L1: at the widths of small models the
// latency of a launch is more than all of it.
#include "reprise/cuda/call.cuh"
#include "reprise/ops/layer_norm.hpp"
#include "reprise/ops/math.hpp"

namespace reprise::REPRISE_BODIES::ops {

namespace {

constexpr int warps = 4;
static_assert(layer_norm_slots == 32, "a slot is a lane");

// Both of a pair compute the same sum, so that in the end every lane has that of slot 0.
__device__ float fold_warp(float slot) {
#pragma unroll
  for (int half = 16; half > 0; half /= 2) {
    slot = math::add(slot, __shfl_xor_sync(0xffffffffu, slot, half));
  }
  return slot;
}

__global__ void __launch_bounds__(warps * 32)
    layer_norm_grid(read<float> x, read<float> gain, read<float> bias, write<float> y,
                    std::int64_t rows, std::int64_t width, float eps) {
  const std::int64_t row = std::int64_t{blockIdx.x} * warps + threadIdx.x / 32;
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
  const float variance = math::div(fold_warp(slot), count);
  const float inverse = math::div(1.0f, math::sqrt(math::add(variance, eps)));
  for (std::int64_t j = lane; j < width; j += 32) {
    const float normed = math::mul(math::sub(from[j], mean), inverse);
    to[j] = math::add(math::mul(normed, gain.data()[j]), bias.data()[j]);
  }
}

}  // namespace

void layer_norm_cuda(cuda_call& call, read<float> x, read<float> gain, read<float> bias,
                     write<float> y, std::int64_t width, float eps) {
  const std::int64_t rows = layer_norm_rows(x.size(), gain.size(), bias.size(), y.size(), width);
  if (rows == 0) return;
  const auto blocks = static_cast<unsigned>((rows + warps - 1) / warps);
  layer_norm_grid<<<blocks, warps * 32, 0, call.stream()>>>(x, gain, bias, y, rows, width, eps);
}

}  // namespace reprise::REPRISE_BODIES::ops
