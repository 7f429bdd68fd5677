// The arithmetic of a draw, of which both sides of `sample` are made: weights, shares, targets.
//
// A weight is an integer below 2^32, but it was an f32, so no more than 24 of its bits matter. A
// key is the weight in 28 bits that keep its order: 5 bits of exponent over 23 of fraction.
// Searching keys digit by digit finds an edge among weights without sorting them.
#pragma once

#include <cstdint>

#include "reprise/base/portable.hpp"
#include "reprise/ops/greatest.hpp"
#include "reprise/ops/philox.hpp"

namespace reprise::REPRISE_BODIES::ops {

// key = exponent << 23 | fraction, for weight = floor((2^23 + fraction) * 2^(exponent - 23)), the
// fraction's bits that this drops being zero. A weight of 0 has no bits: its key is -1.
using weight_key = std::int32_t;

inline constexpr weight_key no_weight = -1;
inline constexpr int key_fraction_bits = 23;
inline constexpr int key_bits = 28;

inline constexpr std::uint32_t bits_of_smallest = 95u << key_fraction_bits;  // of the f32 2^-32

// The digits of a key, from the top: what the search for the edge reads.
inline constexpr int digit_count = 3;
inline constexpr int first_digit_bits = 12;
inline constexpr int next_digit_bits = 8;
REPRISE_HD constexpr int digit_bits(int digit) {
  return digit == 0 ? first_digit_bits : next_digit_bits;
}
REPRISE_HD constexpr int digit_shift(int digit) {
  return 16 - 8 * digit;
}
static_assert(first_digit_bits + 2 * next_digit_bits == key_bits);

// Of e^x, which is at most 1; NaN has no weight.
REPRISE_HD inline weight_key key_of(float exponential) {
  if (!(exponential >= 0x1p-32f)) return no_weight;
  const float capped = exponential < 0x1.fffffep-1f ? exponential : 0x1.fffffep-1f;
  const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, capped) - bits_of_smallest;
  const std::uint32_t exponent = bits >> key_fraction_bits;
  const std::uint32_t dropped = exponent < 23 ? 23 - exponent : 0;
  return static_cast<weight_key>(bits & (0xffffffffu << dropped));
}

// A sum of fractions (with their leading ones) that share a key's exponent, as a sum of weights.
REPRISE_HD inline std::uint64_t weight_of_fractions(std::uint64_t sum, std::uint32_t exponent) {
  return exponent < 23 ? sum >> (23 - exponent) : sum << (exponent - 23);
}

REPRISE_HD inline std::uint32_t fraction_of(weight_key key) {
  return (static_cast<std::uint32_t>(key) & 0x7fffffu) | 0x800000u;
}

REPRISE_HD inline std::uint64_t weight_of(weight_key key) {
  if (key < 0) return 0;
  return weight_of_fractions(fraction_of(key),
                             static_cast<std::uint32_t>(key) >> key_fraction_bits);
}

// floor(a * b / 2^64)
REPRISE_HD inline std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) {
#if defined(__CUDA_ARCH__)
  return __umul64hi(a, b);
#else
  __extension__ using wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<wide>(a) * b) >> 64);
#endif
}

REPRISE_HD inline bool keeps_all(float top_p) {
  return !(top_p < 1.0f);
}

// ceil(top_p * total), at least 1, for top_p < 1 taken down to a multiple of 2^-32.
REPRISE_HD inline std::uint64_t share_of(std::uint64_t total, float top_p) {
  if (!(top_p > 0.0f)) return 1;
  const std::uint64_t part = static_cast<std::uint64_t>(top_p * 0x1p32f) << 32;
  const std::uint64_t share = multiply_high(total, part) + (total * part != 0 ? 1 : 0);
  return share > 1 ? share : 1;
}

// Which tokens are kept: every key above `edge`, and the first `ties` of those at it.
struct nucleus {
  weight_key edge = no_weight;
  std::uint32_t ties = 0;
};

// The edge is the key at which the sum passes `need`; `above` is the sum of heavier weights.
REPRISE_HD inline nucleus nucleus_at(weight_key edge, std::uint64_t above, std::uint64_t need) {
  const std::uint64_t weight = weight_of(edge);
  return {edge, static_cast<std::uint32_t>((need - above + weight - 1) / weight)};
}

// Whether the row is drawn from; else its argmax is the answer.
REPRISE_HD inline bool is_drawn(const greatest& row, float temperature, float inverse) {
  constexpr float infinity = __builtin_huge_valf();
  return row.index >= 0 && row.value > -infinity && row.value < infinity && temperature > 0.0f &&
         inverse < infinity;
}

REPRISE_HD inline std::uint64_t random_word(std::uint64_t seed, std::uint64_t counter) {
  const philox_words words = philox(seed, counter, 0);
  return words.at[0] | static_cast<std::uint64_t>(words.at[1]) << 32;
}

}  // namespace reprise::REPRISE_BODIES::ops
