// A layer norm with a GELU right behind it, forwards and backwards: one launch where layer_norm and
// gelu are two, and nothing written in between.
//
//   x, y, dy, dx [m, width], gain, bias, dgain, dbias [width], stats [m, 2], rules [1]
//     n[i, j] = what layer_norm_saving writes, rounded to f32 (layer_norm.hpp)
//     layer_norm_gelu_saving       y[i, j] = gelu(n[i, j]) (gelu.hpp), and stats as there
//     d[i, j] = what gelu_grad makes of n[i, j] and dy[i, j], with n formed again from x and stats
//     layer_norm_gelu_input_grad   dx as layer_norm_input_grad makes it of d
//     layer_norm_gelu_weight_grad  dgain and dbias as layer_norm_weight_grad makes them of d
//
// The bits are those of the two ops one behind the other, on the CPU and on CUDA: each operation is
// the same one, and every sum has the order that it has there (layer_norm_grad.hpp). So y and dx
// are row-invariant, and the order of the sums over rows is fixed by m alone.
//
// y may be x itself, and dx may be x or dy; the others overlap nothing. Bodies throw usage_error
// when sizes do not fit `width`, and layer_norm_gelu_weight_grad when it is over 2,097,120. On CUDA
// that one needs a workspace of m / 16 rows where m is over 128.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/base/gradient_rule.hpp"
#include "reprise/kernel/kernel.hpp"

namespace reprise::REPRISE_BODIES {

inline constexpr kernel<void(read<float> x, read<float> gain, read<float> bias, write<float> y,
                             write<float> stats, std::int64_t width, float eps)>
    layer_norm_gelu_saving{"layer_norm_gelu_saving"};
inline constexpr kernel<void(read<float> x, read<float> gain, read<float> bias, read<float> stats,
                             read<float> dy, write<float> dx, std::int64_t width)>
    layer_norm_gelu_input_grad{"layer_norm_gelu_input_grad"};
inline constexpr kernel<void(read<float> x, read<float> gain, read<float> bias, read<float> stats,
                             read<float> dy, inout<float> dgain, inout<float> dbias,
                             read<std::int32_t> gain_rule, read<std::int32_t> bias_rule,
                             std::int64_t width)>
    layer_norm_gelu_weight_grad{"layer_norm_gelu_weight_grad"};

void add_layer_norm_gelu(kernel_registry& registry);

namespace ops {

void layer_norm_gelu_saving_cpu(cpu_call&, read<float> x, read<float> gain, read<float> bias,
                                write<float> y, write<float> stats, std::int64_t width, float eps);
void layer_norm_gelu_saving_cuda(cuda_call&, read<float> x, read<float> gain, read<float> bias,
                                 write<float> y, write<float> stats, std::int64_t width, float eps);
void layer_norm_gelu_input_grad_cpu(cpu_call&, read<float> x, read<float> gain, read<float> bias,
                                    read<float> stats, read<float> dy, write<float> dx,
                                    std::int64_t width);
void layer_norm_gelu_input_grad_cuda(cuda_call&, read<float> x, read<float> gain, read<float> bias,
                                     read<float> stats, read<float> dy, write<float> dx,
                                     std::int64_t width);
void layer_norm_gelu_weight_grad_cpu(cpu_call&, read<float> x, read<float> gain, read<float> bias,
                                     read<float> stats, read<float> dy, inout<float> dgain,
                                     inout<float> dbias, read<std::int32_t> gain_rule,
                                     read<std::int32_t> bias_rule, std::int64_t width);
void layer_norm_gelu_weight_grad_cuda(cuda_call&, read<float> x, read<float> gain, read<float> bias,
                                      read<float> stats, read<float> dy, inout<float> dgain,
                                      inout<float> dbias, read<std::int32_t> gain_rule,
                                      read<std::int32_t> bias_rule, std::int64_t width);

// How many rows; throw usage_error when sizes do not fit.
std::int64_t layer_norm_gelu_rows(std::size_t x, std::size_t gain, std::size_t bias, std::size_t y,
                                  std::size_t stats, std::int64_t width);
std::int64_t layer_norm_gelu_input_grad_rows(std::size_t x, std::size_t gain, std::size_t bias,
                                             std::size_t stats, std::size_t dy, std::size_t dx,
                                             std::int64_t width);
std::int64_t layer_norm_gelu_weight_grad_rows(std::size_t x, std::size_t gain, std::size_t bias,
                                              std::size_t stats, std::size_t dy, std::size_t dgain,
                                              std::size_t dbias, std::size_t gain_rule,
                                              std::size_t bias_rule, std::int64_t width);

}  // namespace ops

}  // namespace reprise::REPRISE_BODIES
