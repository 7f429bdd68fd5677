// multiply_by: every element times one number, such as a term of a loss times its weight.
//
//   x, y: any shape, the same for both:   y = factor * x
//
// Elementwise, so row-invariant, and the same bits on the CPU and on CUDA.
//
// y may be x itself. Bodies throw usage_error when the sizes differ.
#pragma once

#include <cstddef>

#include "reprise/kernel/kernel.hpp"

namespace reprise::REPRISE_BODIES {

inline constexpr kernel<void(read<float> x, write<float> y, float factor)> multiply_by{
    "multiply_by"};

void add_multiply_by(kernel_registry& registry);

namespace ops {

void multiply_by_cpu(cpu_call&, read<float> x, write<float> y, float factor);
void multiply_by_cuda(cuda_call&, read<float> x, write<float> y, float factor);

void check_multiply_by(std::size_t x, std::size_t y);

}  // namespace ops

}  // namespace reprise::REPRISE_BODIES
