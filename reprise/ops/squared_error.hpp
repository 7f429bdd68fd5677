// squared_error: the mean of the squared differences, as a loss; squared_error_grad: what reaches x
// of the gradient dloss of that.
//
//   x, target, dx: any shape, the same for all, n elements in all; loss [1], dloss [1]
//     loss  = sum (x - target)^2 / n; 0 where n is 0
//     dx[i] = (x[i] - target[i]) * ((2 * dloss) / n)
//
// The same bits on the CPU and on CUDA: every operation is rounded on its own, and the sum has one
// order, fixed by n alone (total_sum.hpp). dx is elementwise.
//
// dx may be x or target itself. Bodies throw usage_error when sizes do not fit. On CUDA
// squared_error needs a workspace, a float for each 4096 elements.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/kernel/kernel.hpp"
#include "reprise/ops/math.hpp"

namespace reprise::REPRISE_BODIES {

inline constexpr kernel<void(read<float> x, read<float> target, write<float> loss)> squared_error{
    "squared_error"};
inline constexpr kernel<void(read<float> x, read<float> target, read<float> dloss, write<float> dx)>
    squared_error_grad{"squared_error_grad"};

void add_squared_error(kernel_registry& registry);

namespace ops {

void squared_error_cpu(cpu_call&, read<float> x, read<float> target, write<float> loss);
void squared_error_cuda(cuda_call&, read<float> x, read<float> target, write<float> loss);
void squared_error_grad_cpu(cpu_call&, read<float> x, read<float> target, read<float> dloss,
                            write<float> dx);
void squared_error_grad_cuda(cuda_call&, read<float> x, read<float> target, read<float> dloss,
                             write<float> dx);

void check_squared_error(std::size_t x, std::size_t target, std::size_t loss);
void check_squared_error_grad(std::size_t x, std::size_t target, std::size_t dloss, std::size_t dx);

REPRISE_HD inline float squared_off(float x, float target) {
  const float off = math::sub(x, target);
  return math::mul(off, off);
}

// What each difference is multiplied by.
REPRISE_HD inline float error_scale(float dloss, std::size_t elements) {
  return math::div(math::mul(2.0f, dloss), static_cast<float>(elements));
}

}  // namespace ops

}  // namespace reprise::REPRISE_BODIES
