// Whole banks: sdm_expand makes one for each stream out of a learned one, sdm_bank_grad adds up
// what comes back, sdm_cast gives a cotangent its type.
//
//   initial, grad [S, D] of f32 (f64); bank [P * S, D] of B; cotangent [P * S, D] of G
//
//   sdm_expand     bank[p * S + s] = initial[s], in the bank's type; an empty `initial` is zeros
//   sdm_bank_grad  grad[s] : sum over p of cotangent[p * S + s], in increasing p from 0, put as the
//                  gradient_rule in `rule`, a word of device memory, says: under `add` it then
//                  holds old + sum, rounded once; under `leave` it is not touched
//   sdm_cast       to = from, element by element, in the type of `to`; an empty `from` is zeros
//
// An element of the type it has is copied bit for bit. Memory bound: each reads and writes
// everything once, and takes elements as they lie, whatever D is. Bodies throw usage_error when
// sizes do not fit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "reprise/base/gradient_rule.hpp"
#include "reprise/kernel/kernel.hpp"
#include "reprise/sdm/number.hpp"

namespace reprise::REPRISE_BODIES {

template <class B, class X = sdm::arithmetic<B>>
inline constexpr kernel<void(read<X> initial, write<B> bank, std::int64_t streams)> sdm_expand{
    "sdm_expand"};
template <class G, class X = sdm::arithmetic<G>>
inline constexpr kernel<void(read<G> cotangent, inout<X> grad, read<std::int32_t> rule,
                             std::int64_t streams)>
    sdm_bank_grad{"sdm_bank_grad"};
template <class To, class From>
inline constexpr kernel<void(read<From> from, write<To> to)> sdm_cast{"sdm_cast"};

void add_sdm_bank(kernel_registry& registry);

namespace sdm {

template <class B, class X = arithmetic<B>>
void expand_cpu(cpu_call&, read<X> initial, write<B> bank, std::int64_t streams);
template <class G, class X = arithmetic<G>>
void bank_grad_cpu(cpu_call&, read<G> cotangent, inout<X> grad, read<std::int32_t> rule,
                   std::int64_t streams);
template <class To, class From>
void cast_cpu(cpu_call&, read<From> from, write<To> to);
template <class B, class X = arithmetic<B>>
void expand_cuda(cuda_call&, read<X> initial, write<B> bank, std::int64_t streams);
template <class G, class X = arithmetic<G>>
void bank_grad_cuda(cuda_call&, read<G> cotangent, inout<X> grad, read<std::int32_t> rule,
                    std::int64_t streams);
template <class To, class From>
void cast_cuda(cuda_call&, read<From> from, write<To> to);

// Elements of one stream's bank, of `bank` in all. Throw usage_error where sizes do not fit.
std::int64_t expanded_elements(std::size_t initial, std::size_t bank, std::int64_t streams);
std::int64_t bank_grad_elements(std::size_t cotangent, std::size_t grad, std::size_t rule,
                                std::int64_t streams);
void need_cast(std::size_t from, std::size_t to);

// One element in another type.
template <class To, class From>
REPRISE_HD inline To cast_to(From from) {
  if constexpr (std::is_same_v<To, From>) {
    return from;
  } else {
    return narrow<To>(widen(from));
  }
}

}  // namespace sdm

}  // namespace reprise::REPRISE_BODIES
