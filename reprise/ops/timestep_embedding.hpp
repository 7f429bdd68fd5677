// timestep_embedding: a time as sines and cosines of many frequencies, for models that are told how
// far a diffusion or flow has come (Ho, Jain and Abbeel, "Denoising Diffusion Probabilistic
// Models", 2020, after the positions of Vaswani et al., 2017).
//
//   times [m], out [m, width], half = width / 2:
//     out[i, j] = cos(times[i] * f_j),  out[i, half + j] = sin(times[i] * f_j),  0 <= j < half
//     f_j = 1000 * 10000^(-j / half)
//
// A time is in [0, 1]; the factor of 1000 makes it one of the thousand steps of the source. Each
// row has a time of its own in device memory, so that a recorded step takes the time of its run. A
// row depends on its time alone; sin, cos and the power are math::sincos and math::exp, so the CPU
// and CUDA give the same bits.
//
// Bodies throw usage_error when width is odd or below 2, or sizes do not fit it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/kernel/kernel.hpp"
#include "reprise/ops/math.hpp"

namespace reprise::REPRISE_BODIES {

inline constexpr kernel<void(read<float> times, write<float> out, std::int64_t width)>
    timestep_embedding{"timestep_embedding"};

void add_timestep_embedding(kernel_registry& registry);

namespace ops {

void timestep_embedding_cpu(cpu_call&, read<float> times, write<float> out, std::int64_t width);
void timestep_embedding_cuda(cuda_call&, read<float> times, write<float> out, std::int64_t width);

void check_timestep_embedding(std::size_t times, std::size_t out, std::int64_t width);

inline constexpr float timestep_log_range = 9.2103404f;  // ln 10000

REPRISE_HD inline float timestep_frequency(std::int64_t j, std::int64_t half) {
  const float part = math::div(static_cast<float>(j), static_cast<float>(half));
  return math::mul(1000.0f, math::exp<float>(math::mul(-timestep_log_range, part)));
}

}  // namespace ops

}  // namespace reprise::REPRISE_BODIES
