// narrow_to_bf16: f32 values as bf16, for operands of products that take those.
//
//   out[i] = x[i], rounded to nearest, ties to even (base/dtype.hpp)
//
// Elementwise, so row-invariant, and the same bits on the CPU and on CUDA.
//
// x and out do not overlap. Bodies throw usage_error when they differ in size.
#pragma once

#include <cstddef>

#include "reprise/kernel/kernel.hpp"

namespace reprise::REPRISE_BODIES {

inline constexpr kernel<void(read<float> x, write<bf16> out)> narrow_to_bf16{"narrow_to_bf16"};

void add_narrowing(kernel_registry& registry);

namespace ops {

void narrow_to_bf16_cpu(cpu_call&, read<float> x, write<bf16> out);
void narrow_to_bf16_cuda(cuda_call&, read<float> x, write<bf16> out);

void check_narrow_to_bf16(std::size_t x, std::size_t out);

}  // namespace ops

}  // namespace reprise::REPRISE_BODIES
