// The greatest of a run of logits and where it is: what argmax and sample share on both sides.
#pragma once

#include <cstdint>

#include "reprise/base/portable.hpp"
#include "reprise/device/pointer.hpp"

namespace reprise::REPRISE_BODIES::ops {

// The first of the greatest seen so far; index -1 while nothing but NaN was.
struct greatest {
  float value = 0.0f;
  std::int32_t index = -1;

  // In increasing index.
  REPRISE_HD void see(float candidate, std::int32_t at) {
    if (index < 0 ? candidate == candidate : candidate > value) {
      value = candidate;
      index = at;
    }
  }
  // What another part of the row saw; any order of parts gives the same.
  REPRISE_HD void merge(const greatest& other) {
    if (other.index < 0) return;
    if (index < 0 || other.value > value || (other.value == value && other.index < index)) {
      *this = other;
    }
  }
};

// argmax of a whole row.
REPRISE_HD inline std::int32_t token_of(const greatest& row) {
  return row.index < 0 ? 0 : row.index;
}

inline greatest greatest_of(pointer_to<const float> logits, std::int64_t width) {
  greatest seen;
  for (std::int64_t i = 0; i < width; ++i) seen.see(logits[i], static_cast<std::int32_t>(i));
  return seen;
}

}  // namespace reprise::REPRISE_BODIES::ops
