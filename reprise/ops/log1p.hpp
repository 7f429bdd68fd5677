// log(1 + e) for 0 <= e <= 1, within 2.5 ulp (all floats there tried), of which the losses of
// logits are made. Host and device, the same bits.
#pragma once

#include "reprise/base/portable.hpp"
#include "reprise/ops/math.hpp"

namespace reprise::REPRISE_BODIES::ops {

// What rounding 1 + e has lost is put back by the slope of the logarithm there: log(u) e / (u - 1)
// (Kahan, as in Goldberg, "What every computer scientist should know about floating-point
// arithmetic", 1991, theorem 4). A NaN comes back as one.
REPRISE_HD inline float log1p_of(float e) {
  const float u = math::add(1.0f, e);
  if (u == 1.0f) return e;
  return math::mul(math::log(u), math::div(e, math::sub(u, 1.0f)));
}

}  // namespace reprise::REPRISE_BODIES::ops
