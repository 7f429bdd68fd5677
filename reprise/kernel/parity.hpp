// How near two results are: the words by which a cell says how far its outputs may be from those of
// the CPU body, and the comparison that holds it to that.
//
// A result that cannot be compared is infinitely far away: another shape or type, a NaN or an
// infinity on one side. Two empty results say nothing and are no parity.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "reprise/device/tensor.hpp"

namespace reprise {

// Each element may differ by `absolute`, plus `relative` times the largest magnitude of the
// reference: where a sum cancels, an element alone says nothing of its error. Both 0: the same
// bits.
struct parity_bound {
  double absolute = 0;
  double relative = 0;
  bool operator==(const parity_bound&) const = default;
};

// "exact", "2e-06 relative", "0.1 absolute and 2e-06 relative"
std::string text_of(const parity_bound& bound);

// Whether a NaN agrees with a NaN at the same place.
enum class nan_rule : std::uint8_t { differ, agree };

struct parity_gap {
  std::size_t worst = 0;  // index of the element that is furthest away
  double absolute = 0;    // there; infinite where no number says it
  double relative = 0;    // that, over the largest magnitude of the reference
  bool within = false;    // the bound that was asked for
  std::string why;        // where `absolute` does not say it; else empty
};

// Both in host memory, contiguous. Under a bound, -0 equals 0; integers are compared as integers.
parity_gap compare(const tensor_ref& reference, const tensor_ref& got, const parity_bound& bound,
                   nan_rule nans = nan_rule::differ);

}  // namespace reprise
