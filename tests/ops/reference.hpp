// What gradients and sums are held to in tests: central differences in double, and a sum in slots
// written out plainly.
#pragma once

#include <cstddef>
#include <vector>

namespace reprise::test {

inline std::vector<double> wide(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

// d f / d at[i] for each i, where f takes a vector of doubles and gives one. Its error is that of
// the step squared, and that of one rounding over the step: some 1e-9 of f.
template <class F>
std::vector<double> central_differences(F&& f, std::vector<double> at, double step = 1e-5) {
  std::vector<double> slopes;
  for (double& one : at) {
    const double here = one;
    one = here + step;
    const double above = f(at);
    one = here - step;
    const double below = f(at);
    one = here;
    slopes.push_back((above - below) / (2 * step));
  }
  return slopes;
}

// The sum in the order that ops/slot_sum.hpp documents.
inline float in_slots(const std::vector<float>& terms, std::size_t slots) {
  std::vector<float> sums(slots, 0.0F);
  for (std::size_t l = 0; l < terms.size(); ++l) sums[l % slots] += terms[l];
  for (std::size_t half = slots / 2; half > 0; half /= 2) {
    for (std::size_t s = 0; s < half; ++s) sums[s] += sums[s + half];
  }
  return sums[0];
}

}  // namespace reprise::test
