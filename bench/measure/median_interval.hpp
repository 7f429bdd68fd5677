// In which interval a median lies: for differences that are smaller than what is measured varies.
#pragma once

#include <cstddef>
#include <vector>

namespace reprise::bench {

// By order statistics, so nothing is assumed of how the measurements are spread: with at least 95 %
// the median of what they were drawn from lies between two of them, the r-th from either end, where
// r is the largest with P(B < r) <= 2.5 % for B binomial of `count` and 1/2. Of fewer than six it
// is from the least to the greatest, which is less than 95 %. All zero of no measurement.
struct median_interval {
  double median = 0;
  double low = 0;
  double high = 0;
  std::size_t count = 0;
};

median_interval median_interval_of(std::vector<double> measured);

}  // namespace reprise::bench
