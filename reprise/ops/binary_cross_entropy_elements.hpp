// One element of binary_cross_entropy.hpp, of its loss and of its gradients. Host and device, the
// same bits; for the bodies.
#pragma once

#include <cstddef>

#include "reprise/base/portable.hpp"
#include "reprise/ops/log1p.hpp"
#include "reprise/ops/math.hpp"
#include "reprise/ops/sigmoid.hpp"

namespace reprise::REPRISE_BODIES::ops {

REPRISE_HD inline float logit_loss(float x, float target) {
  const float size = x < 0.0f ? -x : x;
  const float upper = x < 0.0f ? 0.0f : x;
  return math::add(math::sub(upper, math::mul(x, target)), log1p_of(math::exp(-size)));
}

// V is float or a vector.
struct logit_slope {
  float scale;
  template <class V>
  [[gnu::always_inline]] REPRISE_HD V operator()(const V& x, const V& target) const {
    return math::mul(math::sub(sigmoid_of<V>(x).value, target), math::fill<V>(scale));
  }
};

REPRISE_HD inline float target_slope(float x, float scale) {
  return -math::mul(x, scale);
}

// What each slope is multiplied by.
REPRISE_HD inline float share_of(float dloss, std::size_t elements) {
  return math::div(dloss, static_cast<float>(elements));
}

}  // namespace reprise::REPRISE_BODIES::ops
