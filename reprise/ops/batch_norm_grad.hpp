// The backward of batch_norm, from what it kept of each column: batch_norm_weight_grad for the
// sums over rows, which are the gradients of gain and bias, batch_norm_input_grad for that of its
// input, from those sums; frozen_batch_norm_grad for that of the input where the statistics are
// frozen.
//
//   x, dy, dx [m, width], gain, dgain, dbias [width], stats [2, width] = {means, inverse
//   deviations}, running [2, width] = {means, variances}, sums [2, width], gain_rule, bias_rule
//   [1]; with unit[i, j] = (x[i, j] - mean_j) * inverse_j, sums over i:
//     sums[0, j] = sum dy[i, j] * unit[i, j]
//     sums[1, j] = sum dy[i, j]
//     dgain[j] : sums[0, j];   dbias[j] : sums[1, j]
//     dx[i, j] = (gain[j] * inverse_j)
//                * ((dy[i, j] - sums[1, j] / m) - unit[i, j] * (sums[0, j] / m))
//   frozen:
//     dx[i, j] = dy[i, j] * (gain[j] * (1 / sqrt(running[1, j] + eps)))
//
// dgain and dbias get their sum, once it is finished, as the gradient_rule in a word of device
// memory says, each in its own: under `add` the buffer then holds old + sum, rounded once; under
// `leave` it is not touched. Where nobody trains them, dgain, dbias and their rules are empty, all
// four.
//
// The same bits on the CPU and on CUDA: every operation is rounded on its own, and the order of
// sums over rows is fixed by m alone (norms.hpp), so that a column has the bits it has alone. The
// gradients of inputs are elementwise.
//
// dx may be x or dy itself; the others overlap nothing. Bodies throw usage_error when sizes do not
// fit `width`, and when it is over 2,097,120. On CUDA batch_norm_weight_grad needs a workspace of
// m / 16 rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/base/gradient_rule.hpp"
#include "reprise/kernel/kernel.hpp"

namespace reprise::REPRISE_BODIES {

inline constexpr kernel<void(read<float> x, read<float> stats, read<float> dy, write<float> sums,
                             inout<float> dgain, inout<float> dbias, read<std::int32_t> gain_rule,
                             read<std::int32_t> bias_rule, std::int64_t width)>
    batch_norm_weight_grad{"batch_norm_weight_grad"};
inline constexpr kernel<void(read<float> x, read<float> gain, read<float> stats, read<float> sums,
                             read<float> dy, write<float> dx, std::int64_t width)>
    batch_norm_input_grad{"batch_norm_input_grad"};
inline constexpr kernel<void(read<float> gain, read<float> running, read<float> dy, write<float> dx,
                             std::int64_t width, float eps)>
    frozen_batch_norm_grad{"frozen_batch_norm_grad"};

void add_batch_norm_grad(kernel_registry& registry);

namespace ops {

void batch_norm_weight_grad_cpu(cpu_call&, read<float> x, read<float> stats, read<float> dy,
                                write<float> sums, inout<float> dgain, inout<float> dbias,
                                read<std::int32_t> gain_rule, read<std::int32_t> bias_rule,
                                std::int64_t width);
void batch_norm_weight_grad_cuda(cuda_call&, read<float> x, read<float> stats, read<float> dy,
                                 write<float> sums, inout<float> dgain, inout<float> dbias,
                                 read<std::int32_t> gain_rule, read<std::int32_t> bias_rule,
                                 std::int64_t width);
void batch_norm_input_grad_cpu(cpu_call&, read<float> x, read<float> gain, read<float> stats,
                               read<float> sums, read<float> dy, write<float> dx,
                               std::int64_t width);
void batch_norm_input_grad_cuda(cuda_call&, read<float> x, read<float> gain, read<float> stats,
                                read<float> sums, read<float> dy, write<float> dx,
                                std::int64_t width);
void frozen_batch_norm_grad_cpu(cpu_call&, read<float> gain, read<float> running, read<float> dy,
                                write<float> dx, std::int64_t width, float eps);
void frozen_batch_norm_grad_cuda(cuda_call&, read<float> gain, read<float> running, read<float> dy,
                                 write<float> dx, std::int64_t width, float eps);

// How many rows; throw usage_error when sizes do not fit.
std::int64_t batch_norm_weight_grad_rows(std::size_t x, std::size_t stats, std::size_t dy,
                                         std::size_t sums, std::size_t dgain, std::size_t dbias,
                                         std::size_t gain_rule, std::size_t bias_rule,
                                         std::int64_t width);
std::int64_t batch_norm_input_grad_rows(std::size_t x, std::size_t gain, std::size_t stats,
                                        std::size_t sums, std::size_t dy, std::size_t dx,
                                        std::int64_t width);
std::int64_t frozen_batch_norm_grad_rows(std::size_t gain, std::size_t running, std::size_t dy,
                                         std::size_t dx, std::int64_t width);

}  // namespace ops

}  // namespace reprise::REPRISE_BODIES
