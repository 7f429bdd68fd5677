// Product keys: the slots that a token writes or reads, found by two short rows of scores instead
// of one score for each slot (Lample et al., "Large Memory Layers with Product Keys", 2019).
//
//   a stream has n * n slots; slot (i, j) is i * n + j, and its score first[i] + second[j], rounded
//   once; row r is of stream r / tokens
//   first, second, dfirst, dsecond [m, n]; idx, val, dval [m, k]
//
//   product_key_top    idx = the k best slots of a row, as rows of the bank, (r / tokens) * n * n +
//                      slot, ascending
//                      val = e^(score - top) / (the sum of these over the k), in the order of idx,
//                      with top the greatest of their scores
//   product_key_grad   ds = val * (dval - sum over the k of val * dval), then
//                      dfirst[i] = sum of ds over the chosen slots (i, any), dsecond[j] that over
//                      the chosen (any, j); 0 where there is none
//
// Which are best: in either half the scores have ranks, the best 0, of equal ones the first before
// the others. Slots of the min(k, n) best of both halves can be chosen, the greater score first; of
// equal scores the one with the larger sum of ranks, then the one with the larger rank in `first`.
// In this order a NaN, in a half or as a sum, counts as -inf, and zeros of both signs are equal.
// Where one is chosen all the same, or where top is infinite, its row of val is NaN.
//
// The same bits on the CPU and on CUDA, and in a row those that it has alone: every operation is
// rounded on its own, e^x is math::exp, the sums over the k are in 32 slots (ops/slot_sum.hpp), and
// those of dfirst and dsecond in increasing place, from 0. product_key_grad looks at idx modulo n *
// n; an idx below 0 is the caller's mistake, and adds to nothing.
//
// What is written overlaps nothing. Bodies throw usage_error when sizes do not fit, when n is over
// 1024 or k over 128 or n * n, and when the slots of all streams are more than 31 bits tell apart.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/kernel/kernel.hpp"
#include "reprise/ops/math.hpp"

namespace reprise::REPRISE_BODIES {

inline constexpr kernel<void(read<float> first, read<float> second, write<std::int32_t> idx,
                             write<float> val, std::int64_t n, std::int64_t k, std::int64_t tokens)>
    product_key_top{"product_key_top"};
inline constexpr kernel<void(read<std::int32_t> idx, read<float> val, read<float> dval,
                             write<float> dfirst, write<float> dsecond, std::int64_t n,
                             std::int64_t k)>
    product_key_grad{"product_key_grad"};

void add_product_keys(kernel_registry& registry);

namespace sdm {

inline constexpr std::int64_t most_half_keys = 1024;    // n: what a warp of CUDA sorts in registers
inline constexpr std::int64_t most_chosen_slots = 128;  // k

void product_key_top_cpu(cpu_call&, read<float> first, read<float> second, write<std::int32_t> idx,
                         write<float> val, std::int64_t n, std::int64_t k, std::int64_t tokens);
void product_key_grad_cpu(cpu_call&, read<std::int32_t> idx, read<float> val, read<float> dval,
                          write<float> dfirst, write<float> dsecond, std::int64_t n,
                          std::int64_t k);
void product_key_top_cuda(cuda_call&, read<float> first, read<float> second,
                          write<std::int32_t> idx, write<float> val, std::int64_t n, std::int64_t k,
                          std::int64_t tokens);
void product_key_grad_cuda(cuda_call&, read<std::int32_t> idx, read<float> val, read<float> dval,
                           write<float> dfirst, write<float> dsecond, std::int64_t n,
                           std::int64_t k);

// m of each, from sizes in elements; throw usage_error where they do not fit.
std::int64_t product_key_top_rows(std::size_t first, std::size_t second, std::size_t idx,
                                  std::size_t val, std::int64_t n, std::int64_t k,
                                  std::int64_t tokens);
std::int64_t product_key_grad_rows(std::size_t idx, std::size_t val, std::size_t dval,
                                   std::size_t dfirst, std::size_t dsecond, std::int64_t n,
                                   std::int64_t k);

// The d for which the (d + 1)^2 slots of ranks up to d in both halves are k at least: none of them
// is below the slot of ranks d and d, and so the k best are not below it.
constexpr std::int64_t diagonal_of(std::int64_t k) {
  std::int64_t d = 0;
  while ((d + 1) * (d + 1) < k) ++d;
  return d;
}

// A score's place in the order as a number: equal for equal scores, greater for the greater.
REPRISE_HD inline std::uint32_t order_of(float score) {
  const float seen = score == score ? score : -__builtin_huge_valf();
  const std::uint32_t raw = __builtin_bit_cast(std::uint32_t, seen);
  const std::uint32_t bits = raw == 0x80000000u ? 0u : raw;  // of both zeros, the positive one
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
}
// The score of this place that order_of keeps as it is.
REPRISE_HD inline float score_at(std::uint32_t order) {
  return __builtin_bit_cast(float, (order >> 31) != 0 ? order & 0x7fffffffu : ~order);
}

}  // namespace sdm

}  // namespace reprise::REPRISE_BODIES
