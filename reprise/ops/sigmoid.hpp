// The logistic function s(w) = 1 / (1 + e^-w) and its slope s (1 - s), for the gradients of units
// that are gated by it (gelu, silu). Host and device, the same bits.
#pragma once

#include "reprise/base/portable.hpp"
#include "reprise/ops/math.hpp"

namespace reprise::REPRISE_BODIES::ops {

template <class V>
struct sigmoid {
  V value;
  V slope;
};

// By way of e^-|w|, which is at most 1: nothing cancels, and nothing overflows. The slope is 0
// where |w| > 87.4. V is float or a vector.
template <class V>
[[gnu::always_inline]] REPRISE_HD inline sigmoid<V> sigmoid_of(const V& w) {
  const V zero = math::fill<V>(0.0f);
  const V one = math::fill<V>(1.0f);
  const V size = math::where_less(w, zero, math::sub(zero, w), w);
  const V e = math::exp<V>(math::sub(zero, size));
  const V upper = math::div(one, math::add(one, e));  // s(|w|)
  const V lower = math::mul(e, upper);                // 1 - s(|w|)
  return {math::where_less(w, zero, lower, upper), math::mul(upper, lower)};
}

// x, or the nearer of -limit and limit: for a factor of a slope that is 0 outside of these, where
// the factor could be infinite. A NaN gives any of the three.
template <class V>
[[gnu::always_inline]] REPRISE_HD inline V within(const V& x, float limit) {
  const V low = math::fill<V>(-limit);
  const V high = math::fill<V>(limit);
  const V raised = math::where_less(x, low, low, x);
  return math::where_less(high, raised, high, raised);
}

}  // namespace reprise::REPRISE_BODIES::ops
