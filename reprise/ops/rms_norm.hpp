// rms_norm: each row divided by its root mean square, times a gain (Zhang and Sennrich, "Root Mean
// Square Layer Normalization", 2019).
//
//   x [m, width], gain [width], y [m, width]:
//     y[i, j] = (x[i, j] * (1 / sqrt(sum over l of x[i, l]^2 / width + eps))) * gain[j]
//
// Row-invariant, and the same bits on the CPU and on CUDA: every operation is rounded on its own,
// and the sum has one order. Element l is added, in increasing l, to slot l mod 4096; then the
// slots are added by pairs of neighbours, and those sums again by pairs, until one is left.
//
// y may be x itself; gain overlaps neither. Bodies throw usage_error when sizes do not fit `width`.
#pragma once

#include <cstdint>

#include "reprise/kernel/kernel.hpp"

namespace reprise::REPRISE_BODIES {

// (A, W) is (float, float), (float, bf16) or (bf16, bf16).
template <class A, class W>
inline constexpr kernel<void(read<A>, read<W>, write<A>, std::int64_t width, float eps)> rms_norm{
    "rms_norm"};

void add_rms_norm(kernel_registry& registry);

namespace ops {

inline constexpr int rms_norm_slots = 4096;

template <class A, class W>
void rms_norm_cpu(cpu_call&, read<A> x, read<W> gain, write<A> y, std::int64_t width, float eps);
template <class A, class W>
void rms_norm_cuda(cuda_call&, read<A> x, read<W> gain, write<A> y, std::int64_t width, float eps);

// How many rows; throws usage_error when sizes do not fit.
std::int64_t rms_norm_rows(std::size_t x, std::size_t gain, std::size_t y, std::int64_t width);

}  // namespace ops

}  // namespace reprise::REPRISE_BODIES
