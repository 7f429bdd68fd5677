// moving_average: an average that decays, moved by one value of each element (as Polyak and
// Juditsky, "Acceleration of stochastic approximation by averaging", 1992, average weights, with
// later ones weighing more).
//
//   words [1] = {decay}, value, average: any shape, the same for both
//     average[i] = decay * average[i] + (1 - decay) * value[i]
//
// The word lies in device memory, so that a recorded step reads that of its run. Elementwise; each
// operation is rounded on its own, so the CPU and CUDA give the same bits. Nothing overlaps. Bodies
// throw usage_error when sizes do not fit.
#pragma once

#include <cstddef>

#include "reprise/kernel/kernel.hpp"
#include "reprise/ops/math.hpp"

namespace reprise::REPRISE_BODIES {

inline constexpr kernel<void(read<float> words, read<float> value, inout<float> average)>
    moving_average{"moving_average"};

void add_moving_average(kernel_registry& registry);

namespace ops {

void moving_average_cpu(cpu_call&, read<float> words, read<float> value, inout<float> average);
void moving_average_cuda(cuda_call&, read<float> words, read<float> value, inout<float> average);

void check_moving_average(std::size_t words, std::size_t value, std::size_t average);

REPRISE_HD inline float averaged(float decay, float average, float value) {
  return math::add(math::mul(decay, average), math::mul(math::sub(1.0f, decay), value));
}

}  // namespace ops

}  // namespace reprise::REPRISE_BODIES
