// sample: one token of each row, drawn by temperature and nucleus (Holtzman et al., "The Curious
// Case of Neural Text Degeneration", 2020).
//
//   logits [m, width]; temperatures, top_ps, seeds, counters and out: [m]
//
// For each row, with g the greatest logit and t the temperature:
//   weight[i] = floor(2^32 * min(e^((logits[i] - g) * (1 / t)), 1 - 2^-24)), an integer; NaN weighs
//   0 kept: the heaviest tokens, fewest that reach ceil(top_p * the sum of all weights); of equal
//         weights at the edge, those of lowest index. All of them when top_p is 1 or more, or NaN;
//         at least one.
//   out = the first kept token at which the running sum of kept weights, in order of index, exceeds
//         floor(u * the sum of kept weights / 2^64)
// where u is 64 bits of Philox with key `seed` and counter `counter` (its high half 0). A caller
// that moves the counter by one per token draws independent numbers; the same (seed, counter)
// repeats.
//
// Row-invariant, and the same token on every device for the same logits: weights come of math::exp,
// and their sums are exact integers, so that order does not matter. When t is not above 0, or so
// small that 1 / t is infinite, or g is not finite, out is the row's argmax instead.
//
// Bodies throw usage_error when sizes do not fit `width`, or width exceeds max_sample_width.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/kernel/kernel.hpp"

namespace reprise::REPRISE_BODIES {

inline constexpr std::int64_t max_sample_width = std::int64_t{1} << 20;

inline constexpr kernel<void(read<float> logits, read<float> temperatures, read<float> top_ps,
                             read<std::uint64_t> seeds, read<std::uint64_t> counters,
                             write<std::int32_t>, std::int64_t width)>
    sample{"sample"};

void add_sample(kernel_registry& registry);

namespace ops {

void sample_cpu(cpu_call&, read<float> logits, read<float> temperatures, read<float> top_ps,
                read<std::uint64_t> seeds, read<std::uint64_t> counters, write<std::int32_t> out,
                std::int64_t width);
void sample_cuda(cuda_call&, read<float> logits, read<float> temperatures, read<float> top_ps,
                 read<std::uint64_t> seeds, read<std::uint64_t> counters, write<std::int32_t> out,
                 std::int64_t width);

// The sizes of a call, in elements, for its check.
struct sample_sizes {
  std::size_t logits, temperatures, top_ps, seeds, counters, out;
};
// How many rows; throws usage_error when sizes do not fit.
std::int64_t sample_rows(const sample_sizes& sizes, std::int64_t width);

}  // namespace ops

}  // namespace reprise::REPRISE_BODIES
