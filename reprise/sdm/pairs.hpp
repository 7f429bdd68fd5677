// sdm_pairs and sdm_invert: how the tokens of a chunk act on one another, for all chunks at once.
//
//   recalls, readings, inverse [P, N, C, C], row t and column s; X is f32 or f64
//
//   recalls[t, s]  = sum of k_t k_s e^(L_t - L_s) over w, then over the writes of token s < t on
//                    the slot of write w of token t: what token t recalls of the delta of token s
//   readings[t, s] = sum of c_t k_s e^(L_t - L_s) over n, then over the writes of token s <= t on
//                    the slot of read n of token t: what token t reads of it
// each term (k_t * k_s) * e, added in increasing w or n from 0; zeros elsewhere, and behind the
// chunk's last token. k_val [P, T, W], q_val [P, T, R], level of sdm_weights.
//
// sdm_invert, with A the recalls and b the beta [P, T, 1] of a chunk's tokens:
//   scaled_columns   (I + A diag(b))^-1: the errors of a chunk, of what its tokens alone fail to
//                    recall
//   scaled_rows      (I + diag(b) A)^-1, whose transpose gives the cotangents of the deltas
// by forward substitution: inverse[t, j] = -(sum over s of [j, t) of M[t, s] * inverse[s, j]), in
// increasing s from 0, with M[t, s] one product; 1 on the diagonal, 0 above it and, but for the
// diagonal, behind the chunk's last token.
#pragma once

#include <cstdint>

#include "reprise/kernel/kernel.hpp"
#include "reprise/sdm/sizes.hpp"

namespace reprise {

enum class sdm_inverse : std::int32_t { scaled_columns, scaled_rows };

}  // namespace reprise

namespace reprise::REPRISE_BODIES {

template <class X>
inline constexpr kernel<void(read<std::int32_t> order, read<std::int32_t> place,
                             read<std::int32_t> run_of, read<std::int32_t> runs, read<X> k_val,
                             read<X> q_val, read<double> level, write<X> recalls, write<X> readings,
                             sdm_sizes)>
    sdm_pairs{"sdm_pairs"};
template <class X>
inline constexpr kernel<void(read<X> recalls, read<X> beta, write<X> inverse, sdm_inverse,
                             sdm_sizes)>
    sdm_invert{"sdm_invert"};

void add_sdm_pairs(kernel_registry& registry);

namespace sdm {

template <class X>
void pairs_cpu(cpu_call&, read<std::int32_t> order, read<std::int32_t> place,
               read<std::int32_t> run_of, read<std::int32_t> runs, read<X> k_val, read<X> q_val,
               read<double> level, write<X> recalls, write<X> readings, sdm_sizes sizes);
template <class X>
void invert_cpu(cpu_call&, read<X> recalls, read<X> beta, write<X> inverse, sdm_inverse which,
                sdm_sizes sizes);
template <class X>
void pairs_cuda(cuda_call&, read<std::int32_t> order, read<std::int32_t> place,
                read<std::int32_t> run_of, read<std::int32_t> runs, read<X> k_val, read<X> q_val,
                read<double> level, write<X> recalls, write<X> readings, sdm_sizes sizes);
template <class X>
void invert_cuda(cuda_call&, read<X> recalls, read<X> beta, write<X> inverse, sdm_inverse which,
                 sdm_sizes sizes);

// Throw usage_error when sizes do not fit.
template <class X>
void check_pairs(read<std::int32_t> order, read<std::int32_t> place, read<std::int32_t> run_of,
                 read<std::int32_t> runs, read<X> k_val, read<X> q_val, read<double> level,
                 write<X> recalls, write<X> readings, const sdm_sizes& sizes);
template <class X>
void check_invert(read<X> recalls, read<X> beta, write<X> inverse, const sdm_sizes& sizes);

}  // namespace sdm

}  // namespace reprise::REPRISE_BODIES
