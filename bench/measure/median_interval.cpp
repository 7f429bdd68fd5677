#include "bench/measure/median_interval.hpp"

#include <algorithm>
#include <cmath>

namespace reprise::bench {

namespace {

constexpr double each_tail = 0.025;

// From 1: which measurement from either end.
std::size_t rank_of(std::size_t count) {
  const auto n = static_cast<double>(count);
  double below = 0;  // P(B < r)
  std::size_t r = 0;
  for (; 2 * r < count; ++r) {
    const auto k = static_cast<double>(r);
    below += std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) -
                      n * std::log(2.0));
    if (below > each_tail) break;
  }
  return std::max<std::size_t>(r, 1);
}

}  // namespace

median_interval median_interval_of(std::vector<double> measured) {
  if (measured.empty()) return {};
  std::ranges::sort(measured);
  const std::size_t count = measured.size();
  const std::size_t rank = rank_of(count);
  return {measured[(count + 1) / 2 - 1], measured[rank - 1], measured[count - rank], count};
}

}  // namespace reprise::bench
