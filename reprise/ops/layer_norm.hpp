// layer_norm: each row less its mean, divided by its standard deviation, times a gain, plus a bias
// (Ba, Kiros and Hinton, "Layer Normalization", 2016).
//
//   x [m, width], gain [width], bias [width], y [m, width], sums over l:
//     mean_i = sum x[i, l] / width
//     variance_i = sum (x[i, l] - mean_i)^2 / width
//     y[i, j] = (((x[i, j] - mean_i) * (1 / sqrt(variance_i + eps))) * gain[j]) + bias[j]
//
// Row-invariant, and the same bits on the CPU and on CUDA: every operation is rounded on its own,
// and both sums have one order. Element l is added, in increasing l, to slot l mod 32; then slot s
// takes slot s + 16, then s + 8, and so on to the first.
//
// y may be x itself; gain and bias overlap neither. Bodies throw usage_error when sizes do not fit
// `width`.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/kernel/kernel.hpp"

namespace reprise::REPRISE_BODIES {

inline constexpr kernel<void(read<float> x, read<float> gain, read<float> bias, write<float> y,
                             std::int64_t width, float eps)>
    layer_norm{"layer_norm"};

void add_layer_norm(kernel_registry& registry);

namespace ops {

inline constexpr int layer_norm_slots = 32;

void layer_norm_cpu(cpu_call&, read<float> x, read<float> gain, read<float> bias, write<float> y,
                    std::int64_t width, float eps);
void layer_norm_cuda(cuda_call&, read<float> x, read<float> gain, read<float> bias, write<float> y,
                     std::int64_t width, float eps);

// How many rows; throws usage_error when sizes do not fit.
std::int64_t layer_norm_rows(std::size_t x, std::size_t gain, std::size_t bias, std::size_t y,
                             std::int64_t width);

}  // namespace ops

}  // namespace reprise::REPRISE_BODIES
