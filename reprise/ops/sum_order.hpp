// How far a sum may be from the CPU's when a body adds the same products in another order, or fuses
// them with their additions: the bound of the cells of matmul, attention and linear on CUDA.
#pragma once

#include <type_traits>

#include "reprise/base/dtype.hpp"
#include "reprise/base/portable.hpp"
#include "reprise/kernel/parity.hpp"

namespace reprise::REPRISE_BODIES::ops {

// A is what the sum is stored as: some roundings of f32, or one step of bf16.
template <class A>
inline constexpr parity_bound other_order_of_sums{.relative =
                                                      std::is_same_v<A, bf16> ? 0x1p-7 : 2e-6};

}  // namespace reprise::REPRISE_BODIES::ops
