// What many measurements of one thing come to: the median, and between which two of them eight out
// of ten lie.
#pragma once

#include <cstddef>
#include <vector>

namespace reprise::bench {

// Nearest-rank percentiles, so each figure is one that was measured. All zero of no measurement.
struct spread {
  double median = 0;
  double p10 = 0;
  double p90 = 0;
  std::size_t count = 0;
};

spread spread_of(std::vector<double> measured);

}  // namespace reprise::bench
