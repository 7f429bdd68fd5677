#include "reprise/loop/comparison.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "reprise/device/view.hpp"

namespace reprise {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

template <class T = float>
tap_difference compared(std::vector<T> reference, std::vector<T> got,
                        const tap_bounds& bounds = {}) {
  return compare_taps(as_tensor(view<T>{reference.data(), reference.size()}),
                      as_tensor(view<T>{got.data(), got.size()}), bounds);
}

TEST(comparing_taps, is_of_bits_unless_bounds_are_given) {
  EXPECT_TRUE(compared({1, -2}, {1, -2}).within);
  EXPECT_FALSE(compared({1}, {std::nextafter(1.0F, 2.0F)}).within);
  const tap_difference zeros = compared({0.0F}, {-0.0F});
  EXPECT_FALSE(zeros.within);
  EXPECT_EQ(zeros.why, "element 0 is -0 instead of 0, of the same value in other bits");
  EXPECT_TRUE(compared({0.0F}, {-0.0F}, {.absolute = 1e-9}).within);
}

TEST(comparing_taps, takes_absolute_and_relative_bounds_together) {
  EXPECT_TRUE(compared({100}, {101.5F}, {.absolute = 0.5, .relative = 0.01}).within);
  EXPECT_FALSE(compared({100}, {101.75F}, {.absolute = 0.5, .relative = 0.01}).within);
}

TEST(comparing_taps, takes_a_relative_bound_of_the_largest_magnitude) {
  EXPECT_TRUE(compared({0, -100}, {1, -100}, {.relative = 0.01}).within);
  EXPECT_FALSE(compared({0, -100}, {1.5F, -100}, {.relative = 0.01}).within);
}

TEST(comparing_taps, names_the_worst_element) {
  const tap_difference seen = compared({1, 100, 7}, {2, 104, 9}, {.relative = 0.015});
  EXPECT_FALSE(seen.within);
  EXPECT_EQ(seen.worst, 1U);
  EXPECT_EQ(seen.absolute, 4.0);
  EXPECT_EQ(seen.why, "");
}

TEST(comparing_taps, counts_another_shape_or_type_as_infinitely_far) {
  const tap_difference shape = compared({1, 2}, {1}, {.absolute = 10});
  EXPECT_FALSE(shape.within);
  EXPECT_EQ(shape.absolute, infinite);
  EXPECT_EQ(shape.why, "it is f32 [1] instead of f32 [2]");
  std::vector<float> one{0};
  std::vector<std::int32_t> other{0};
  const tap_difference type = compare_taps(as_tensor(view<float>{one.data(), 1}),
                                           as_tensor(view<std::int32_t>{other.data(), 1}), {});
  EXPECT_EQ(type.absolute, infinite);
  EXPECT_EQ(type.why, "it is i32 [1] instead of f32 [1]");
}

TEST(comparing_taps, of_nothing_is_no_parity) {
  const tap_difference seen = compared({}, {}, {.absolute = 10});
  EXPECT_FALSE(seen.within);
  EXPECT_EQ(seen.absolute, infinite);
  EXPECT_EQ(seen.why, "both are empty, so nothing is compared");
}

TEST(comparing_taps, lets_nan_equal_nan_only_when_asked) {
  const tap_difference seen = compared({1, nan}, {1, nan}, {.absolute = 1e9});
  EXPECT_FALSE(seen.within);
  EXPECT_EQ(seen.absolute, infinite);
  EXPECT_EQ(seen.worst, 1U);
  EXPECT_FALSE(compared({nan}, {nan}).within);
  EXPECT_TRUE(compared({nan, 1}, {-nan, 1}, {.nan_equals_nan = true}).within);
  EXPECT_FALSE(compared({nan}, {1}, {.absolute = 1, .nan_equals_nan = true}).within);
  EXPECT_FALSE(compared({1}, {nan}, {.absolute = 1, .nan_equals_nan = true}).within);
}

TEST(comparing_taps, wants_the_same_infinity_whatever_the_bounds) {
  EXPECT_TRUE(compared({infinity}, {infinity}).within);
  EXPECT_FALSE(compared({infinity}, {-infinity}, {.absolute = 1, .relative = 1}).within);
  EXPECT_FALSE(compared({infinity}, {3}, {.absolute = 1, .relative = 1}).within);
}

TEST(comparing_taps, holds_integers_to_every_bit) {
  const std::int64_t large = std::int64_t{1} << 60;
  EXPECT_TRUE(compared<std::int64_t>({large}, {large}).within);
  EXPECT_FALSE(compared<std::int64_t>({large}, {large + 1}).within);
  EXPECT_TRUE(compared<std::int64_t>({5}, {6}, {.absolute = 1}).within);
}

}  // namespace
}  // namespace reprise
