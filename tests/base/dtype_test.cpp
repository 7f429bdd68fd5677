// Element types: sizes, names, and the two conversions, held against formulas of another shape.
#include "reprise/base/dtype.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <string>

namespace reprise {
namespace {

constexpr std::array every_type{dtype::f32, dtype::f16, dtype::bf16, dtype::f64,
                                dtype::i32, dtype::i64, dtype::u64,  dtype::u8};

std::uint16_t narrowed(float x) {
  return narrow<bf16>(x).bits;
}
float from_bits(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}

// The nearest bf16 by distance, ties to the even one; in double, where both distances are exact.
std::uint16_t nearest(float x) {
  const auto below = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16);
  const auto above = static_cast<std::uint16_t>(below + 1);
  const double to_below = std::abs(double{x} - double{widen(bf16{below})});
  // Above the largest finite one stands what would come next, not infinity.
  const double next = std::isinf(widen(bf16{above})) ? std::copysign(0x1p128, double{x})
                                                     : double{widen(bf16{above})};
  const double to_above = std::abs(double{x} - next);
  if (to_below != to_above) return to_below < to_above ? below : above;
  return below % 2 == 0 ? below : above;
}

TEST(dtype, has_the_size_of_the_cpp_type_that_stands_for_it) {
  EXPECT_EQ(size_of(dtype_of<float>), sizeof(float));
  EXPECT_EQ(size_of(dtype_of<bf16>), sizeof(bf16));
  EXPECT_EQ(size_of(dtype_of<double>), sizeof(double));
  EXPECT_EQ(size_of(dtype_of<std::int32_t>), sizeof(std::int32_t));
  EXPECT_EQ(size_of(dtype_of<std::int64_t>), sizeof(std::int64_t));
  EXPECT_EQ(size_of(dtype_of<std::uint64_t>), sizeof(std::uint64_t));
  EXPECT_EQ(size_of(dtype_of<std::uint8_t>), sizeof(std::uint8_t));
  EXPECT_EQ(size_of(dtype::f16), 2U);
}

TEST(dtype, has_a_name_of_its_own) {
  std::set<std::string_view> names;
  for (const dtype type : every_type) names.insert(name_of(type));
  EXPECT_EQ(names.size(), every_type.size());
  EXPECT_FALSE(names.contains("?"));
}

TEST(dtype, is_not_had_by_types_that_are_no_elements) {
  EXPECT_TRUE(element<float>);
  EXPECT_TRUE(element<bf16>);
  struct no_element {};
  EXPECT_FALSE(element<no_element>);
}

TEST(bf16, widens_exactly_for_every_bit_pattern) {
  for (std::uint32_t bits = 0; bits <= 0xffffU; ++bits) {
    const float wide = widen(bf16{static_cast<std::uint16_t>(bits)});
    ASSERT_EQ(std::bit_cast<std::uint32_t>(wide), bits << 16);
  }
}

TEST(bf16, comes_back_from_widening_as_it_was) {
  for (std::uint32_t bits = 0; bits <= 0xffffU; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float wide = widen(bf16{half});
    if (std::isnan(wide)) continue;  // quieted
    ASSERT_EQ(narrowed(wide), half);
  }
}

TEST(bf16, rounds_to_the_nearest_and_ties_to_the_even_one) {
  EXPECT_EQ(narrowed(from_bits(0x3f808000)), 0x3f80);  // a tie, below is even
  EXPECT_EQ(narrowed(from_bits(0x3f818000)), 0x3f82);  // a tie, above is even
  EXPECT_EQ(narrowed(from_bits(0x3f808001)), 0x3f81);
  EXPECT_EQ(narrowed(from_bits(0x3f817fff)), 0x3f81);
  EXPECT_EQ(narrowed(from_bits(0xbf818000)), 0xbf82);
  EXPECT_EQ(narrowed(from_bits(0x3fffffff)), 0x4000);  // the carry reaches the exponent
}

TEST(bf16, is_the_nearest_one_around_every_upper_half) {
  constexpr std::array<std::uint32_t, 7> lower{0, 1, 0x7fff, 0x8000, 0x8001, 0xfffe, 0xffff};
  for (std::uint32_t upper = 0; upper <= 0xffffU; ++upper) {
    for (const std::uint32_t low : lower) {
      const float x = from_bits(upper << 16 | low);
      if (!std::isfinite(x)) continue;
      ASSERT_EQ(narrowed(x), nearest(x)) << std::hexfloat << x;
    }
  }
}

TEST(bf16, overflows_to_infinity_of_the_same_sign) {
  EXPECT_EQ(narrowed(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(narrowed(std::numeric_limits<float>::lowest()), 0xff80);
  EXPECT_EQ(narrowed(std::numeric_limits<float>::infinity()), 0x7f80);
  EXPECT_EQ(narrowed(-std::numeric_limits<float>::infinity()), 0xff80);
}

TEST(bf16, keeps_a_nan_a_nan_of_the_same_sign) {
  // Payloads in the lower half only would round to infinity, and a full one would wrap to zero.
  for (const std::uint32_t bits :
       {0x7f800001U, 0x7f80ffffU, 0x7fc00000U, 0x7fffffffU, 0xff800001U, 0xffffffffU}) {
    const std::uint16_t half = narrowed(from_bits(bits));
    EXPECT_TRUE(std::isnan(widen(bf16{half}))) << std::hex << bits;
    EXPECT_EQ(half >> 15, bits >> 31) << std::hex << bits;
  }
}

TEST(bf16, keeps_the_sign_of_zero_and_rounds_subnormals) {
  EXPECT_EQ(narrowed(0.0F), 0x0000);
  EXPECT_EQ(narrowed(-0.0F), 0x8000);
  EXPECT_EQ(narrowed(from_bits(0x00000001)), 0x0000);
  EXPECT_EQ(narrowed(from_bits(0x00018000)), 0x0002);
  EXPECT_EQ(narrowed(from_bits(0x80018001)), 0x8002);
  EXPECT_EQ(narrowed(from_bits(0x007fffff)), 0x0080);  // up into the normal ones
}

TEST(narrow, of_a_float_to_a_float_changes_nothing) {
  EXPECT_EQ(narrow<float>(0.1F), 0.1F);
  EXPECT_EQ(widen(0.1F), 0.1F);
}

TEST(half_to_float, is_exact_for_every_bit_pattern) {
  for (std::uint32_t bits = 0; bits <= 0xffffU; ++bits) {
    const int exponent = static_cast<int>(bits >> 10 & 0x1f);
    const auto fraction = static_cast<double>(bits & 0x3ff);
    const float wide = half_to_float(static_cast<std::uint16_t>(bits));
    ASSERT_EQ(std::signbit(wide), bits >= 0x8000) << bits;
    if (exponent == 31) {
      ASSERT_EQ(std::isnan(wide), fraction != 0) << bits;
      ASSERT_EQ(std::isinf(wide), fraction == 0) << bits;
      continue;
    }
    // (-1)^sign 2^(e - 15) (1 + f / 1024), and 2^-14 (f / 1024) when e is 0: IEEE 754, binary16.
    const double magnitude = exponent == 0 ? std::ldexp(fraction / 1024, -14)
                                           : std::ldexp(1 + fraction / 1024, exponent - 15);
    ASSERT_EQ(std::abs(double{wide}), magnitude) << bits;
  }
}

TEST(half_to_float, keeps_the_payload_of_a_nan) {
  EXPECT_EQ(std::bit_cast<std::uint32_t>(half_to_float(0x7e01)), 0x7fc02000U);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(half_to_float(0xfc01)), 0xff802000U);
}

}  // namespace
}  // namespace reprise
