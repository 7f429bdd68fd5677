#include "bench/measure/spread.hpp"

#include <algorithm>

namespace reprise::bench {

spread spread_of(std::vector<double> measured) {
  if (measured.empty()) return {};
  std::ranges::sort(measured);
  const std::size_t count = measured.size();
  const auto at_percent = [&](std::size_t percent) {
    return measured[(count * percent + 99) / 100 - 1];
  };
  return {at_percent(50), at_percent(10), at_percent(90), count};
}

}  // namespace reprise::bench
