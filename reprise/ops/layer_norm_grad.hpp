// The backward of layer_norm, from what layer_norm_saving kept of each row: layer_norm_input_grad
// for the gradient of its input, layer_norm_weight_grad for those of gain and bias.
//
//   x, dy, dx [m, width], gain, dgain, dbias [width], stats [m, 2] = {mean, inverse deviation},
//   gain_rule, bias_rule [1]; with unit[i, j] = (x[i, j] - mean_i) * inverse_i and
//   g[i, j] = dy[i, j] * gain[j], means over j:
//     dx[i, j] = inverse_i * ((g[i, j] - mean of g[i]) - unit[i, j] * (mean of g[i] * unit[i]))
//     dgain[j] : the sum over i of dy[i, j] * unit[i, j]
//     dbias[j] : the sum over i of dy[i, j]
//
// The last two put their sum, once it is finished, as the gradient_rule in a word of device memory
// says, each in its own: under `add` the buffer then holds old + sum, rounded once; under `leave`
// it is not touched.
//
// The same bits on the CPU and on CUDA: every operation is rounded on its own, and every sum has
// one order. dx is row-invariant; its sums are in 32 slots (slot_sum.hpp). Those over rows are in
// chunks (norms.hpp): their order is fixed by m alone, and a column has the bits it has alone.
//
// dx may be x or dy itself; the others overlap nothing. Bodies throw usage_error when sizes do not
// fit `width`, and layer_norm_weight_grad when it is over 2,097,120. On CUDA that one needs a
// workspace of m / 16 rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/base/gradient_rule.hpp"
#include "reprise/kernel/kernel.hpp"

namespace reprise::REPRISE_BODIES {

inline constexpr kernel<void(read<float> x, read<float> gain, read<float> stats, read<float> dy,
                             write<float> dx, std::int64_t width)>
    layer_norm_input_grad{"layer_norm_input_grad"};
inline constexpr kernel<void(read<float> x, read<float> stats, read<float> dy, inout<float> dgain,
                             inout<float> dbias, read<std::int32_t> gain_rule,
                             read<std::int32_t> bias_rule, std::int64_t width)>
    layer_norm_weight_grad{"layer_norm_weight_grad"};

void add_layer_norm_grad(kernel_registry& registry);

namespace ops {

void layer_norm_input_grad_cpu(cpu_call&, read<float> x, read<float> gain, read<float> stats,
                               read<float> dy, write<float> dx, std::int64_t width);
void layer_norm_input_grad_cuda(cuda_call&, read<float> x, read<float> gain, read<float> stats,
                                read<float> dy, write<float> dx, std::int64_t width);
void layer_norm_weight_grad_cpu(cpu_call&, read<float> x, read<float> stats, read<float> dy,
                                inout<float> dgain, inout<float> dbias,
                                read<std::int32_t> gain_rule, read<std::int32_t> bias_rule,
                                std::int64_t width);
void layer_norm_weight_grad_cuda(cuda_call&, read<float> x, read<float> stats, read<float> dy,
                                 inout<float> dgain, inout<float> dbias,
                                 read<std::int32_t> gain_rule, read<std::int32_t> bias_rule,
                                 std::int64_t width);

// How many rows; throw usage_error when sizes do not fit.
std::int64_t layer_norm_input_grad_rows(std::size_t x, std::size_t gain, std::size_t stats,
                                        std::size_t dy, std::size_t dx, std::int64_t width);
std::int64_t layer_norm_weight_grad_rows(std::size_t x, std::size_t stats, std::size_t dy,
                                         std::size_t dgain, std::size_t dbias,
                                         std::size_t gain_rule, std::size_t bias_rule,
                                         std::int64_t width);

}  // namespace ops

}  // namespace reprise::REPRISE_BODIES
