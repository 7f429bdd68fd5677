// layer_norm: each row less its mean, divided by its standard deviation, times a gain, plus a bias
// (Ba, Kiros and Hinton, "Layer Normalization", 2016). layer_norm_saving keeps what the backward
// needs of each row beside that (layer_norm_grad.hpp).
//
//   x [m, width], gain [width], bias [width], y [m, width], stats [m, 2], sums over l:
//     mean_i = sum x[i, l] / width
//     variance_i = sum (x[i, l] - mean_i)^2 / width
//     y[i, j] = (((x[i, j] - mean_i) * (1 / sqrt(variance_i + eps))) * gain[j]) + bias[j]
//     stats[i] = mean_i, 1 / sqrt(variance_i + eps)
//
// Row-invariant, and the same bits on the CPU and on CUDA, with stats or without: every operation
// is rounded on its own, and both sums are in 32 slots (slot_sum.hpp).
//
// y may be x itself; the others overlap nothing. Bodies throw usage_error when sizes do not fit
// `width`.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/kernel/kernel.hpp"

namespace reprise::REPRISE_BODIES {

inline constexpr kernel<void(read<float> x, read<float> gain, read<float> bias, write<float> y,
                             std::int64_t width, float eps)>
    layer_norm{"layer_norm"};
inline constexpr kernel<void(read<float> x, read<float> gain, read<float> bias, write<float> y,
                             write<float> stats, std::int64_t width, float eps)>
    layer_norm_saving{"layer_norm_saving"};

void add_layer_norm(kernel_registry& registry);

namespace ops {

void layer_norm_cpu(cpu_call&, read<float> x, read<float> gain, read<float> bias, write<float> y,
                    std::int64_t width, float eps);
void layer_norm_cuda(cuda_call&, read<float> x, read<float> gain, read<float> bias, write<float> y,
                     std::int64_t width, float eps);
void layer_norm_saving_cpu(cpu_call&, read<float> x, read<float> gain, read<float> bias,
                           write<float> y, write<float> stats, std::int64_t width, float eps);
void layer_norm_saving_cuda(cuda_call&, read<float> x, read<float> gain, read<float> bias,
                            write<float> y, write<float> stats, std::int64_t width, float eps);

// How many rows; throws usage_error, which names `op`, when sizes do not fit.
std::int64_t layer_norm_rows(const char* op, std::size_t x, std::size_t gain, std::size_t bias,
                             std::size_t y, std::int64_t width);
// The same with stats.
std::int64_t layer_norm_saving_rows(std::size_t x, std::size_t gain, std::size_t bias,
                                    std::size_t y, std::size_t stats, std::int64_t width);

}  // namespace ops

}  // namespace reprise::REPRISE_BODIES
