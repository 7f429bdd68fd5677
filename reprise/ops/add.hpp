// add: the sum of two, as where a residual branch joins (He et al., "Deep Residual Learning",
// 2016).
//
//   a, b, y: any shape, the same for all three:   y = a + b
//
// Elementwise, so row-invariant, and the same bits on the CPU and on CUDA.
//
// y may be a or b itself. Bodies throw usage_error when the sizes differ.
#pragma once

#include <cstddef>

#include "reprise/kernel/kernel.hpp"

namespace reprise::REPRISE_BODIES {

inline constexpr kernel<void(read<float> a, read<float> b, write<float> y)> add{"add"};

void add_add(kernel_registry& registry);

namespace ops {

void add_cpu(cpu_call&, read<float> a, read<float> b, write<float> y);
void add_cuda(cuda_call&, read<float> a, read<float> b, write<float> y);

void check_add(std::size_t a, std::size_t b, std::size_t y);

}  // namespace ops

}  // namespace reprise::REPRISE_BODIES
