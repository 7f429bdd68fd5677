// sdm_step: one token, for decoding: it decays and writes its rows and reads, in one kernel, since
// no column of a bank depends on another.
//
//   bank [P * S, D] of B; k_idx, k_val [P, W], v, readings [P, D], beta [P, 1], g [P, G], q_idx,
//   q_val [P, R]; X is f64 where B is, and else f32. sizes.tokens and sizes.chunk are 1.
//
// For each stream, with a = e^g and s[w] the rows that are written, as they are:
//   u = beta * (v - sum over w of (k[w] * a[w]) * s[w])
//   bank[k_idx[w]] = a[w] * s[w] + k[w] * u
//   readings = sum over n of q_val[n] * bank[q_idx[n]], as it then is
// Sums from 0, in increasing order of w and n. The equations of the op itself, one token at a time;
// what the chunked forward computes differs from them by rounding.
#pragma once

#include <cstdint>

#include "reprise/kernel/kernel.hpp"
#include "reprise/sdm/number.hpp"
#include "reprise/sdm/sizes.hpp"

namespace reprise::REPRISE_BODIES {

template <class B, class X = sdm::arithmetic<B>>
inline constexpr kernel<void(inout<B> bank, read<std::int32_t> k_idx, read<X> k_val, read<X> v,
                             read<X> beta, read<X> g, read<std::int32_t> q_idx, read<X> q_val,
                             write<X> readings, sdm_sizes)>
    sdm_step{"sdm_step"};

void add_sdm_step(kernel_registry& registry);

namespace sdm {

template <class B, class X = arithmetic<B>>
void step_cpu(cpu_call&, inout<B> bank, read<std::int32_t> k_idx, read<X> k_val, read<X> v,
              read<X> beta, read<X> g, read<std::int32_t> q_idx, read<X> q_val, write<X> readings,
              sdm_sizes sizes);
template <class B, class X = arithmetic<B>>
void step_cuda(cuda_call&, inout<B> bank, read<std::int32_t> k_idx, read<X> k_val, read<X> v,
               read<X> beta, read<X> g, read<std::int32_t> q_idx, read<X> q_val, write<X> readings,
               sdm_sizes sizes);

}  // namespace sdm

}  // namespace reprise::REPRISE_BODIES
