// What the arithmetic of the memory op is done in: f32, or f64 where the bank is f64 (on the CPU
// alone, to check the others). Each operation is rounded on its own (ops/math.hpp), and every sum
// has one order, which the kernels' headers say: CPU and CUDA give the same bits in f32.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "reprise/base/dtype.hpp"
#include "reprise/base/portable.hpp"
#include "reprise/ops/math.hpp"

namespace reprise::REPRISE_BODIES::sdm {

// B: the type that banks are stored in.
template <class B>
using arithmetic = std::conditional_t<std::is_same_v<B, double>, double, float>;

template <class X, class B>
REPRISE_HD inline X widened(B stored) {
  if constexpr (std::is_same_v<B, X>) {
    return stored;
  } else {
    return widen(stored);
  }
}

template <class B, class X>
REPRISE_HD inline B stored(X value) {
  if constexpr (std::is_same_v<B, X>) {
    return value;
  } else {
    return narrow<B>(value);
  }
}

// A log decay as it is summed: e^-1000 is 0 in f32 and in f64, and a sum that held a larger one
// would take the digits of all that come after it on its slot. So -inf is a decay too.
REPRISE_HD inline double summed_decay(double g) {
  return g < -1000.0 ? -1000.0 : g;
}

// e^(later - earlier) of two sums of log decays on one slot, which is at most 1. The difference is
// taken in f64: a sum of many decays is large where its differences are not.
template <class X>
REPRISE_HD inline X decay_between(double later, double earlier) {
  const double by = math::sub(later, earlier);
  if constexpr (std::is_same_v<X, double>) {
    return std::exp(by);
  } else {
    return math::exp(static_cast<float>(by));
  }
}

// A dot product of two rows is cut into parts of 256 neighbouring columns. In a part, lane l of 32
// adds columns 8 l to 8 l + 7 of it in increasing order, from 0, and the lanes' sums are folded as
// in ops/slot_sum.hpp. Where the whole is asked for, parts are added in increasing order.
inline constexpr std::int64_t part_columns = 256;
inline constexpr std::int64_t lane_columns = 8;

REPRISE_HD constexpr std::int64_t parts_of(std::int64_t width) {
  return (width + part_columns - 1) / part_columns;
}

}  // namespace reprise::REPRISE_BODIES::sdm
