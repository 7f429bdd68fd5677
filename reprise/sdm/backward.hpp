// The backward of a chunk, three kernels one after the other; chunks of a stream from the last to
// the first. Each leaves bank and cotangent as they were, or would have been, before the chunk.
//
//   bank [P * S, D] of B, its cotangent [P * S, D] of G, which is B or f32; X as in the forward
//   dy, m, errors [P, T, D], beta [P, T, 1]
//
//   sdm_gather      m[t] = sum over w of tail * cotangent[k_idx[t, w]]
//   sdm_solve_back  x[s] = m[s] + sum over t >= s of pairs[t, s] * dy[t]
//                   m[s] = sum over t >= s of inverse[t, s] * x[t]: the cotangent of the delta
//                   u[s]; `inverse` has scaled rows
//   sdm_rewind      for each run, with M its row before the chunk (the saved one, if it was
//                   written; the bank then holds it again), G its cotangent, dv = beta * m and
//                   u = beta * error:
//                     by event  of_state = <M, dy> of a read, <M, dv> of a write
//                               of_cotangent = <G, u> of a write, 0 of a read
//                     by run    of_both = <G, M>
//                     cotangent = keep * G + sum over its events, in the order of time, of
//                     head * dy for a read and -(head * dv) for a write
//
// Sums are in increasing order of w, t and time; that of sdm_rewind begins with its first term, the
// others at 0, and the sum over dy is finished before it is added to m. The dot products are left
// in parts (number.hpp): of_state and of_cotangent [P, N, E, parts], of_both [P, N, E, parts]; what
// is left out, and what no run is behind, is not touched. Only what belongs to chunk `n` is.
//
// What is written overlaps nothing else. Bodies throw usage_error when sizes do not fit.
#pragma once

#include <cstdint>

#include "reprise/kernel/kernel.hpp"
#include "reprise/sdm/number.hpp"
#include "reprise/sdm/saved_rows.hpp"
#include "reprise/sdm/sizes.hpp"

namespace reprise::REPRISE_BODIES {

template <class G, class X = sdm::arithmetic<G>>
inline constexpr kernel<void(read<G> cotangent, read<std::int32_t> k_idx, read<X> tail, write<X> m,
                             sdm_sizes, std::int64_t n)>
    sdm_gather{"sdm_gather"};
template <class X>
inline constexpr kernel<void(read<X> inverse, read<X> pairs, read<X> dy, inout<X> m, sdm_sizes,
                             std::int64_t n)>
    sdm_solve_back{"sdm_solve_back"};

template <class B, class G, class X = sdm::arithmetic<B>>
inline constexpr kernel<void(
    read<std::int32_t> order, read<std::int32_t> runs, read<std::int32_t> rows,
    read<std::int32_t> written, read<X> head, read<X> keep, read<X> beta, read<X> dy, read<X> m,
    read<X> errors, read<std::uint8_t> saved, inout<B> bank, inout<G> cotangent, write<X> of_state,
    write<X> of_cotangent, write<X> of_both, saved_rows, sdm_sizes, std::int64_t n)>
    sdm_rewind{"sdm_rewind"};

void add_sdm_backward(kernel_registry& registry);

namespace sdm {

template <class G, class X = arithmetic<G>>
void gather_cpu(cpu_call&, read<G> cotangent, read<std::int32_t> k_idx, read<X> tail, write<X> m,
                sdm_sizes sizes, std::int64_t n);
template <class X>
void solve_back_cpu(cpu_call&, read<X> inverse, read<X> pairs, read<X> dy, inout<X> m,
                    sdm_sizes sizes, std::int64_t n);
template <class B, class G, class X = arithmetic<B>>
void rewind_cpu(cpu_call&, read<std::int32_t> order, read<std::int32_t> runs,
                read<std::int32_t> rows, read<std::int32_t> written, read<X> head, read<X> keep,
                read<X> beta, read<X> dy, read<X> m, read<X> errors, read<std::uint8_t> saved,
                inout<B> bank, inout<G> cotangent, write<X> of_state, write<X> of_cotangent,
                write<X> of_both, saved_rows format, sdm_sizes sizes, std::int64_t n);
template <class G, class X = arithmetic<G>>
void gather_cuda(cuda_call&, read<G> cotangent, read<std::int32_t> k_idx, read<X> tail, write<X> m,
                 sdm_sizes sizes, std::int64_t n);
template <class X>
void solve_back_cuda(cuda_call&, read<X> inverse, read<X> pairs, read<X> dy, inout<X> m,
                     sdm_sizes sizes, std::int64_t n);
template <class B, class G, class X = arithmetic<B>>
void rewind_cuda(cuda_call&, read<std::int32_t> order, read<std::int32_t> runs,
                 read<std::int32_t> rows, read<std::int32_t> written, read<X> head, read<X> keep,
                 read<X> beta, read<X> dy, read<X> m, read<X> errors, read<std::uint8_t> saved,
                 inout<B> bank, inout<G> cotangent, write<X> of_state, write<X> of_cotangent,
                 write<X> of_both, saved_rows format, sdm_sizes sizes, std::int64_t n);

}  // namespace sdm

}  // namespace reprise::REPRISE_BODIES
