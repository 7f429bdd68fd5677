// batch_norm: each column less its mean over the rows, divided by its standard deviation, times a
// gain, plus a bias, in training (Ioffe and Szegedy, "Batch Normalization", 2015); it moves running
// statistics, and keeps what the backward needs (batch_norm_grad.hpp). frozen_batch_norm: the same
// by the running statistics, in inference.
//
//   x, y [m, width], gain, bias [width], running [2, width] = {means, variances},
//   stats [2, width] = {means, inverse deviations}; sums over i, chunks of rows c (norms.hpp) with
//   n_c rows and mean_c = sum of c x[i, j] / n_c:
//     mean_j = sum x[i, j] / m
//     square_j = sum over c of (sum of c (x[i, j] - mean_c)^2 + n_c * (mean_c - mean_j)^2)
//     inverse_j = 1 / sqrt(square_j / m + eps)
//     y[i, j] = (((x[i, j] - mean_j) * inverse_j) * gain[j]) + bias[j]
//     running[0, j] = (1 - momentum) * running[0, j] + momentum * mean_j
//     running[1, j] = (1 - momentum) * running[1, j] + momentum * (square_j / (m - 1))
//   frozen: running[0, j] for mean_j, and 1 / sqrt(running[1, j] + eps) for inverse_j
//
// square_j is the sum of (x[i, j] - mean_j)^2, combined from chunks (Chan, Golub and LeVeque,
// "Algorithms for computing the sample variance", 1983, equation 2.1): x is read twice and not
// three times, and nothing large is cancelled.
//
// The same bits on the CPU and on CUDA: every operation is rounded on its own, and the order of
// sums over rows is fixed by m alone, so that a column has the bits it has alone. frozen_batch_norm
// is elementwise.
//
// y may be x itself; the others overlap nothing. Bodies throw usage_error when sizes do not fit
// `width`, when it is over 2,097,120, and batch_norm when m is under 2: one row has no variance. On
// CUDA that one needs a workspace of m / 16 rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/kernel/kernel.hpp"
#include "reprise/ops/math.hpp"

namespace reprise::REPRISE_BODIES {

inline constexpr kernel<void(read<float> x, read<float> gain, read<float> bias,
                             inout<float> running, write<float> y, write<float> stats,
                             std::int64_t width, float eps, float momentum)>
    batch_norm{"batch_norm"};
inline constexpr kernel<void(read<float> x, read<float> gain, read<float> bias, read<float> running,
                             write<float> y, std::int64_t width, float eps)>
    frozen_batch_norm{"frozen_batch_norm"};

void add_batch_norm(kernel_registry& registry);

namespace ops {

void batch_norm_cpu(cpu_call&, read<float> x, read<float> gain, read<float> bias,
                    inout<float> running, write<float> y, write<float> stats, std::int64_t width,
                    float eps, float momentum);
void batch_norm_cuda(cuda_call&, read<float> x, read<float> gain, read<float> bias,
                     inout<float> running, write<float> y, write<float> stats, std::int64_t width,
                     float eps, float momentum);
void frozen_batch_norm_cpu(cpu_call&, read<float> x, read<float> gain, read<float> bias,
                           read<float> running, write<float> y, std::int64_t width, float eps);
void frozen_batch_norm_cuda(cuda_call&, read<float> x, read<float> gain, read<float> bias,
                            read<float> running, write<float> y, std::int64_t width, float eps);

// How many rows; throw usage_error when sizes do not fit.
std::int64_t batch_norm_rows(std::size_t x, std::size_t gain, std::size_t bias, std::size_t running,
                             std::size_t y, std::size_t stats, std::int64_t width);
std::int64_t frozen_batch_norm_rows(std::size_t x, std::size_t gain, std::size_t bias,
                                    std::size_t running, std::size_t y, std::int64_t width);

// What a chunk of `count` rows adds to the squares about `mean`, from its own sum and from its
// squares about its own mean.
REPRISE_HD inline float squares_of_chunk(float sum, float squares, float count, float mean) {
  const float off = math::sub(math::div(sum, count), mean);
  return math::add(squares, math::mul(count, math::mul(off, off)));
}

REPRISE_HD inline float moved_towards(float running, float batch, float momentum) {
  return math::add(math::mul(math::sub(1.0f, momentum), running), math::mul(momentum, batch));
}

}  // namespace ops

}  // namespace reprise::REPRISE_BODIES
