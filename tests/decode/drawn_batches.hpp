// Continuous batching as a seed draws it: which requests are in each step, with how many tokens, in
// which rows of the tensor and in which order they are named.
//
// Requests arrive when a place is free, are given other places between steps, end with their text
// or before, and prefill some of their tokens alone. Nothing here depends on what a model says.
#pragma once

#include <cstdint>
#include <vector>

#include "reprise/tap/tap_spec.hpp"

namespace reprise::test {

// packed: requests lie one behind the other, and padding behind them. batched: each place has
// rows of its own, and padding behind its request's; a place may be empty.
enum class batch_layout : std::uint8_t { packed, batched };

struct drawn_step {
  bool prefill = false;  // one request alone, unpadded; never recorded
  // By row of the tensor.
  std::vector<std::int32_t> tokens, positions, slots;
  std::vector<request_rows> requests;
  std::vector<std::uint64_t> left;  // behind it
};

struct drawn_run {
  batch_layout layout = batch_layout::packed;
  std::vector<drawn_step> steps;
  // What the cache has to count.
  std::uint64_t captured = 0, replayed = 0, eager = 0;
};

inline constexpr int batch_places = 4;
inline constexpr std::int64_t most_batch_rows = 16;

// `texts`: of each request, token by token. Request i has slot i; slots behind theirs are nobody's.
drawn_run draw_run(std::uint64_t seed, const std::vector<std::vector<std::int32_t>>& texts);

}  // namespace reprise::test
