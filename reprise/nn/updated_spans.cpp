#include "reprise/nn/updated_spans.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <ranges>

#include "reprise/base/mutant.hpp"

namespace reprise::nn {

std::vector<updated_span> updated_spans(const parameter_set& set) {
  std::vector<updated_span> spans;
  bool goes_on = false;
  for (std::size_t i = 0; i < set.size(); ++i) {
    const bool is_updated = set[i].has_grad || REPRISE_MUTANT(update_takes_empty_gradients);
    if (is_updated) {
      if (!goes_on) spans.push_back({set.begin(i), 0});
      spans.back().end = set.end(i);
    }
    goes_on = is_updated;
  }
  return spans;
}

bool has_gradients(const parameter_set& set) {
  return std::ranges::any_of(std::views::iota(std::size_t{0}, set.size()),
                             [&](std::size_t i) { return set[i].has_grad; });
}

// 64 of them in a word.
void declare_gradients(signature& in, const parameter_set& set) {
  for (std::size_t first = 0; first < set.size(); first += 64) {
    in.key(fmt::format("with gradients, from {}", first), [&set, first] {
      std::uint64_t bits = 0;
      for (std::size_t i = first; i < set.size() && i < first + 64; ++i) {
        if (set[i].has_grad) bits |= std::uint64_t{1} << (i - first);
      }
      return bits;
    });
  }
}

}  // namespace reprise::nn
