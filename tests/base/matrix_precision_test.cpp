#include "reprise/base/matrix_precision.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "reprise/base/gradient_rule.hpp"

namespace reprise {
namespace {

float from_bits(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}

// By arithmetic: eleven bits, of which the first is not stored; ties go to even in nearbyint.
float nearest(float x) {
  int exponent = 0;
  const double fraction = std::frexp(double{x}, &exponent);
  return static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(fraction, 11)), exponent - 11));
}

TEST(matrix_precision, tf32_takes_the_nearest_of_ten_bits_of_fraction) {
  std::uint32_t bits = 0x00800000u;  // the smallest normal one
  for (; bits < 0x7f000000u; bits += 99991) {
    const float x = from_bits(bits);
    ASSERT_EQ(rounded_to_tf32(x), nearest(x)) << x;
    ASSERT_EQ(rounded_to_tf32(-x), -nearest(x)) << x;
    ASSERT_EQ(std::bit_cast<std::uint32_t>(rounded_to_tf32(x)) & 0x1fffu, 0u) << x;
  }
}

TEST(matrix_precision, tf32_sends_ties_to_the_even_one) {
  EXPECT_EQ(rounded_to_tf32(1.0f + 0x1p-11f), 1.0f);
  EXPECT_EQ(rounded_to_tf32(1.0f + 0x1p-10f + 0x1p-11f), 1.0f + 0x1p-9f);
  EXPECT_EQ(rounded_to_tf32(1.0f + 0x1p-11f + 0x1p-23f), 1.0f + 0x1p-10f);
  EXPECT_EQ(rounded_to_tf32(-1.0f - 0x1p-11f), -1.0f);
}

TEST(matrix_precision, tf32_keeps_what_it_can_hold_and_what_is_no_number) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const float x : {0.0f, 1.0f, -1.5f, 0x1.ffcp127f, infinity, -infinity}) {
    EXPECT_EQ(rounded_to_tf32(x), x);
  }
  EXPECT_TRUE(std::signbit(rounded_to_tf32(-0.0f)));
  EXPECT_EQ(rounded_to_tf32(std::numeric_limits<float>::max()), infinity);
  for (const std::uint32_t bits : {0x7f800001u, 0x7fffffffu, 0xff800001u, 0xffffffffu}) {
    EXPECT_TRUE(std::isnan(rounded_to_tf32(from_bits(bits)))) << bits;
  }
}

TEST(matrix_precision, has_a_name_each) {
  EXPECT_EQ(name_of(matrix_precision::full), "full");
  EXPECT_EQ(name_of(matrix_precision::tf32), "tf32");
}

TEST(gradient_rule, is_what_the_word_says_and_leave_where_that_says_nothing) {
  for (const auto rule : {gradient_rule::write, gradient_rule::add, gradient_rule::leave}) {
    EXPECT_EQ(gradient_rule_of(static_cast<std::int32_t>(rule)), rule) << name_of(rule);
  }
  for (const std::int32_t word : {-1, 3, 1 << 30}) {
    EXPECT_EQ(gradient_rule_of(word), gradient_rule::leave) << word;
  }
}

TEST(gradient_rule, puts_the_sum_or_adds_it) {
  EXPECT_EQ(put(gradient_rule::write, std::numeric_limits<float>::quiet_NaN(), 2.5f), 2.5f);
  EXPECT_EQ(put(gradient_rule::add, 0x1p24f, 1.0f), 0x1p24f) << "rounded once, to even";
  EXPECT_EQ(put(gradient_rule::add, -1.0f, 2.5f), 1.5f);
}

}  // namespace
}  // namespace reprise
