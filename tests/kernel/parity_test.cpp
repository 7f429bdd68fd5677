// Comparing results: what counts as near, and what is infinitely far away.
#include "reprise/kernel/parity.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace reprise {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float inf = std::numeric_limits<float>::infinity();

template <class T>
tensor_ref tensor_of(std::vector<T>& values, const dims& shape) {
  return {reinterpret_cast<std::byte*>(values.data()), dtype_of<T>, shape,
          contiguous_strides(shape)};
}
template <class T>
parity_gap between(std::vector<T> reference, std::vector<T> got, const parity_bound& bound = {},
                   nan_rule nans = nan_rule::differ) {
  return compare(tensor_of(reference, {static_cast<std::int64_t>(reference.size())}),
                 tensor_of(got, {static_cast<std::int64_t>(got.size())}), bound, nans);
}

TEST(parity, of_equal_bits_is_exact) {
  const parity_gap none = between<float>({1, -2, inf, -0.0F}, {1, -2, inf, -0.0F});
  EXPECT_EQ(none.absolute, 0);
  EXPECT_EQ(none.relative, 0);
  EXPECT_TRUE(none.within);
}

TEST(parity, of_one_value_in_other_bits_is_not_exact_and_within_every_bound) {
  const parity_gap zeros = between<float>({1, -0.0F}, {1, 0.0F});
  EXPECT_EQ(zeros.absolute, 0);
  EXPECT_FALSE(zeros.within);
  EXPECT_EQ(zeros.worst, 1U);
  EXPECT_EQ(zeros.why, "element 1 is 0 and not -0, the same value in other bits");
  EXPECT_TRUE(between<float>({1, -0.0F}, {1, 0.0F}, {.absolute = 1e-9}).within);
}

TEST(parity, names_the_element_that_is_furthest_away) {
  const parity_gap seen = between<float>({1, -4, 2}, {1.25F, -3, 2});
  EXPECT_EQ(seen.worst, 1U);
  EXPECT_EQ(seen.absolute, 1);
  EXPECT_EQ(seen.relative, 0.25) << "over the largest magnitude of the reference";
  EXPECT_FALSE(seen.within);
}

TEST(parity, is_within_a_bound_up_to_and_with_it) {
  EXPECT_TRUE(between<double>({4, 8}, {4, 9}, {.absolute = 1}).within);
  EXPECT_FALSE(between<double>({4, 8}, {4, 9.5}, {.absolute = 1}).within);
  EXPECT_TRUE(between<double>({4, 8}, {5, 8}, {.relative = 0.125}).within);
  EXPECT_FALSE(between<double>({4, 8}, {5.5, 8}, {.relative = 0.125}).within);
  EXPECT_TRUE(between<double>({4, 8}, {5.5, 8}, {.absolute = 0.5, .relative = 0.125}).within);
}

TEST(parity, of_another_shape_or_type_is_infinitely_far_away) {
  std::vector<float> six{1, 2, 3, 4, 5, 6};
  std::vector<std::int32_t> ints{1, 2, 3, 4, 5, 6};
  const parity_bound wide{.absolute = 1e30};
  const parity_gap shape = compare(tensor_of(six, {6}), tensor_of(six, {2, 3}), wide);
  EXPECT_EQ(shape.absolute, infinite);
  EXPECT_FALSE(shape.within);
  EXPECT_EQ(shape.why, "its shape is [2, 3] and not [6]");
  const parity_gap type = compare(tensor_of(six, {6}), tensor_of(ints, {6}), wide);
  EXPECT_EQ(type.absolute, infinite);
  EXPECT_EQ(type.why, "it holds i32 and not f32");
}

TEST(parity, is_not_had_by_two_empties) {
  const parity_gap none = between<float>({}, {}, {.absolute = 1});
  EXPECT_EQ(none.absolute, infinite);
  EXPECT_FALSE(none.within);
}

TEST(parity, takes_no_nan_for_a_nan_unless_that_is_asked_for) {
  const parity_gap strict = between<float>({1, nan}, {1, nan}, {.absolute = 1e30});
  EXPECT_EQ(strict.absolute, infinite);
  EXPECT_EQ(strict.worst, 1U);
  EXPECT_FALSE(strict.within);
  EXPECT_TRUE(between<float>({1, nan}, {1, nan}, {}, nan_rule::agree).within);
  EXPECT_FALSE(between<float>({1, nan}, {1, 2}, {.absolute = 1e30}, nan_rule::agree).within);
}

TEST(parity, of_an_infinity_and_a_number_is_infinitely_far_away) {
  EXPECT_EQ(between<float>({1}, {inf}, {.absolute = 1e30}).absolute, infinite);
  EXPECT_FALSE(between<float>({inf, 1}, {1, 1}, {.relative = 1}).within);
  EXPECT_FALSE(between<float>({inf}, {-inf}, {.relative = 1}).within);
}

TEST(parity, compares_large_integers_as_integers) {
  const std::int64_t large = (std::int64_t{1} << 60) + 1;
  EXPECT_FALSE(between<std::int64_t>({large}, {large - 1}).within);
  EXPECT_EQ(between<std::int64_t>({large}, {large - 1}).absolute, 1);
  EXPECT_TRUE(between<std::uint64_t>({~0ULL}, {~0ULL}).within);
  EXPECT_EQ(between<std::uint8_t>({3}, {250}).absolute, 247);
  EXPECT_EQ(between<std::int32_t>({-5}, {5}).absolute, 10);
}

TEST(parity, of_zeros_and_something_is_not_relative_to_anything) {
  const parity_gap seen = between<float>({0, 0}, {0, 0.5F}, {.absolute = 1});
  EXPECT_EQ(seen.relative, infinite);
  EXPECT_TRUE(seen.within);
}

TEST(parity_bound, is_written_in_words) {
  EXPECT_EQ(text_of(parity_bound{}), "exact");
  EXPECT_EQ(text_of({.absolute = 0.5, .relative = 2e-6}), "0.5 absolute and 2e-06 relative");
}

}  // namespace
}  // namespace reprise
