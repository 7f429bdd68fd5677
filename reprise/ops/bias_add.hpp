// bias_add: the same vector added to each row, as behind a matrix product.
//
//   x [m, width], bias [width], out [m, width]:   out[i, j] = x[i, j] + bias[j]
//
// Elementwise, so row-invariant, and the same bits on the CPU and on CUDA.
//
// out may be x itself; bias overlaps neither. Bodies throw usage_error when sizes do not fit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/kernel/kernel.hpp"

namespace reprise::REPRISE_BODIES {

inline constexpr kernel<void(read<float> x, read<float> bias, write<float> out)> bias_add{
    "bias_add"};

void add_bias_add(kernel_registry& registry);

namespace ops {

void bias_add_cpu(cpu_call&, read<float> x, read<float> bias, write<float> out);
void bias_add_cuda(cuda_call&, read<float> x, read<float> bias, write<float> out);

// How many rows there are; the bias says how wide they are.
std::int64_t bias_add_rows(std::size_t x, std::size_t bias, std::size_t out);

}  // namespace ops

}  // namespace reprise::REPRISE_BODIES
