// How far one tap is from the same tap of another run.
//
// What cannot be compared is infinitely far: another shape or type, a NaN, another infinity. Two
// empty tensors say nothing and are no parity.
#pragma once

#include <cstddef>
#include <string>

#include "reprise/device/tensor.hpp"

namespace reprise {

// Each element may differ by `absolute`, plus `relative` times the largest magnitude of the
// reference. Both 0: the same bits.
struct tap_bounds {
  double absolute = 0;
  double relative = 0;
  bool nan_equals_nan = false;  // false: a NaN equals nothing, itself included
};

struct tap_difference {
  std::size_t worst = 0;  // index of the element that is furthest away
  double absolute = 0;    // there; infinite where no number says it
  bool within = false;    // the bounds
  std::string why;        // where `absolute` does not say it; else empty
};

// Both in host memory, contiguous.
tap_difference compare_taps(const tensor_ref& reference, const tensor_ref& got,
                            const tap_bounds& bounds);

}  // namespace reprise
