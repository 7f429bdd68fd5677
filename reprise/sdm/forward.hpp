// The forward of a chunk, three kernels one after the other; chunks of a stream in their order.
//
//   bank [P * S, D] of B: f32, bf16, or f64 on the CPU; X is f64 for that and else f32
//   v, errors, readings [P, T, D], beta [P, T, 1]; inverse and pairs [P, N, C, C] of pairs.hpp
//
//   sdm_recall   errors[t] = v[t] - sum over w of head * bank[k_idx[t, w]]
//                readings[t] = sum over n of head * bank[q_idx[t, n]]
//   sdm_solve    errors[t] = sum over s <= t of inverse[t, s] * errors[s], as they were
//                readings[t] += sum over s <= t of pairs[t, s] * u[s], with u = beta * error
//   sdm_write    for each run with a write: its row is saved, and becomes
//                keep * row + sum over its writes of tail * u
//
// Sums are in increasing order of w, n, s and time; that of sdm_write begins with its first term,
// the others at 0, and the sum of sdm_solve is finished before it is added. Only what belongs to
// chunk `n` is touched. `saved` is [P, N, C * W] rows of row_bytes, row written[r] of a chunk that
// of its run r; an empty one keeps nothing, for a call without a backward. Order, runs, rows and
// written are those of sdm_order.
//
// What is written overlaps nothing else. Bodies throw usage_error when sizes do not fit.
#pragma once

#include <cstdint>

#include "reprise/kernel/kernel.hpp"
#include "reprise/sdm/number.hpp"
#include "reprise/sdm/saved_rows.hpp"
#include "reprise/sdm/sizes.hpp"

namespace reprise::REPRISE_BODIES {

template <class B, class X = sdm::arithmetic<B>>
inline constexpr kernel<void(read<B> bank, read<std::int32_t> k_idx, read<std::int32_t> q_idx,
                             read<X> head, read<X> v, write<X> errors, write<X> readings, sdm_sizes,
                             std::int64_t n)>
    sdm_recall{"sdm_recall"};
template <class X>
inline constexpr kernel<void(read<X> inverse, read<X> pairs, read<X> beta, inout<X> errors,
                             inout<X> readings, sdm_sizes, std::int64_t n)>
    sdm_solve{"sdm_solve"};
template <class B, class X = sdm::arithmetic<B>>
inline constexpr kernel<void(read<std::int32_t> order, read<std::int32_t> runs,
                             read<std::int32_t> rows, read<std::int32_t> written, read<X> tail,
                             read<X> keep, read<X> beta, read<X> errors, inout<B> bank,
                             write<std::uint8_t> saved, saved_rows, sdm_sizes, std::int64_t n)>
    sdm_write{"sdm_write"};

void add_sdm_forward(kernel_registry& registry);

namespace sdm {

template <class B, class X = arithmetic<B>>
void recall_cpu(cpu_call&, read<B> bank, read<std::int32_t> k_idx, read<std::int32_t> q_idx,
                read<X> head, read<X> v, write<X> errors, write<X> readings, sdm_sizes sizes,
                std::int64_t n);
template <class X>
void solve_cpu(cpu_call&, read<X> inverse, read<X> pairs, read<X> beta, inout<X> errors,
               inout<X> readings, sdm_sizes sizes, std::int64_t n);
template <class B, class X = arithmetic<B>>
void write_cpu(cpu_call&, read<std::int32_t> order, read<std::int32_t> runs,
               read<std::int32_t> rows, read<std::int32_t> written, read<X> tail, read<X> keep,
               read<X> beta, read<X> errors, inout<B> bank, write<std::uint8_t> saved,
               saved_rows format, sdm_sizes sizes, std::int64_t n);
template <class B, class X = arithmetic<B>>
void recall_cuda(cuda_call&, read<B> bank, read<std::int32_t> k_idx, read<std::int32_t> q_idx,
                 read<X> head, read<X> v, write<X> errors, write<X> readings, sdm_sizes sizes,
                 std::int64_t n);
template <class X>
void solve_cuda(cuda_call&, read<X> inverse, read<X> pairs, read<X> beta, inout<X> errors,
                inout<X> readings, sdm_sizes sizes, std::int64_t n);
template <class B, class X = arithmetic<B>>
void write_cuda(cuda_call&, read<std::int32_t> order, read<std::int32_t> runs,
                read<std::int32_t> rows, read<std::int32_t> written, read<X> tail, read<X> keep,
                read<X> beta, read<X> errors, inout<B> bank, write<std::uint8_t> saved,
                saved_rows format, sdm_sizes sizes, std::int64_t n);

}  // namespace sdm

}  // namespace reprise::REPRISE_BODIES
