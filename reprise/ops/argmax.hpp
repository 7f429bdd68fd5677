// argmax: the greatest of each row, for greedy decoding.
//
//   logits [m, width], out [m]:   out[i] = the lowest index of the greatest logits[i, :]
//
// NaN never wins: a row of NaN gives 0. -0 equals +0. Comparisons do not round, so the answer is
// one and the same on every device and at every m.
//
// Bodies throw usage_error when sizes do not fit `width`, or width is 2^31 or more.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/kernel/kernel.hpp"

namespace reprise::REPRISE_BODIES {

inline constexpr kernel<void(read<float> logits, write<std::int32_t>, std::int64_t width)> argmax{
    "argmax"};

void add_argmax(kernel_registry& registry);

namespace ops {

void argmax_cpu(cpu_call&, read<float> logits, write<std::int32_t> out, std::int64_t width);
void argmax_cuda(cuda_call&, read<float> logits, write<std::int32_t> out, std::int64_t width);

// How many rows; throws usage_error when sizes do not fit.
std::int64_t argmax_rows(std::size_t logits, std::size_t out, std::int64_t width);

}  // namespace ops

}  // namespace reprise::REPRISE_BODIES
