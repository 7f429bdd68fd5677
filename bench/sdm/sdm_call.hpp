// The arrays of one call of the memory op, on the device: random, the same for the same seed.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "reprise/device/memory.hpp"
#include "reprise/grad/tensor.hpp"
#include "reprise/sdm/op.hpp"

namespace reprise::bench {

// `each` slots for every token of every stream, as rows of the bank: distinct and ascending within
// a token, each set of slots as likely as any other.
std::vector<std::int32_t> draw_slots(const sdm_sizes& sizes, std::int64_t each,
                                     std::mt19937_64& random);

// Weights of a token are positive and add up to one, as those of a softmax; beta lies in [0.5, 1)
// and g in (-0.05, 0], so that numbers keep their size over any number of tokens.
struct sdm_call {
  // Reads sizes.tokens; a g for each token. In the order of the stream, which is idle afterwards.
  sdm_call(pool& memory, stream_ref stream, const sdm_sizes& sizes, int seed);

  // They point to the arrays.
  std::vector<operand> operands_for(const sparse_delta_memory<bf16>& op) const;

  sdm_sizes sizes;
  buffer<std::int32_t> k_idx, q_idx;
  buffer<float> k_val, q_val;
  buffer<float> v, dy;  // and what a layer is given, [P * T, D]
  buffer<float> beta, g;
};

// An initial bank [S, D] that is trained. Rows repeat: the host holds a part of it only. Stays
// where it is: ops point to it.
struct sdm_bank {
  sdm_bank(pool& memory, stream_ref stream, std::int64_t slots, std::int64_t width);
  sdm_bank(const sdm_bank&) = delete;
  sdm_bank& operator=(const sdm_bank&) = delete;

  buffer<float> value;
  buffer<float> gradient;
  parameter at;
};

}  // namespace reprise::bench
