// Where kernels put the finished sum of a gradient. Called by one thread for each element, when its
// kernel has read the rule and returned under `leave`.
#pragma once

#include <cuda_runtime.h>

#include "reprise/base/gradient_rule.hpp"
#include "reprise/ops/math.hpp"

namespace reprise::REPRISE_BODIES::ops {

// Under `write` what is there is not read. Under `add` the sum is rounded before it is added, also
// where it is a product: nothing is fused.
__device__ inline void put_sum(gradient_rule rule, float sum, float& to) {
  to = rule == gradient_rule::add ? math::add(to, sum) : sum;
}

}  // namespace reprise::REPRISE_BODIES::ops
