#include "reprise/sdm/saved_rows.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "reprise/sdm/row_codec.hpp"
#include "tests/sdm/chunk_run.hpp"

namespace reprise::test {
namespace {

using doubles = std::vector<double>;
using sdm_chunk::at;
using sdm_chunk::chunk_case;

// What a code of e4m3 means, from its fields.
double meaning(unsigned code) {
  const int exponent = static_cast<int>(code >> 3 & 15U);
  const double fraction = static_cast<double>(code & 7U) / 8;
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -6) : std::ldexp(1 + fraction, exponent - 7);
  return (code & 0x80U) != 0 ? -magnitude : magnitude;
}

// The code whose number is nearest, of two the even one.
unsigned nearest_code(double x) {
  unsigned best = 0;
  for (unsigned code = 0; code < 0x7f; ++code) {
    const double off = std::abs(meaning(code) - std::abs(x));
    const double least = std::abs(meaning(best) - std::abs(x));
    if (off < least || (off == least && code % 2 == 0)) best = code;
  }
  return std::signbit(x) ? best | 0x80U : best;
}

TEST(e4m3, brings_each_of_its_codes_back) {
  for (unsigned code = 0; code < 256; ++code) {
    const float x = sdm::from_e4m3(static_cast<std::uint8_t>(code));
    EXPECT_EQ(sdm::to_e4m3(x), code);
    if ((code & 0x7fU) == 0x7f) {
      EXPECT_TRUE(std::isnan(x)) << code;
    } else {
      EXPECT_EQ(static_cast<double>(x), meaning(code)) << code;
    }
  }
  EXPECT_EQ(sdm::from_e4m3(0x7e), 448.0F);
  EXPECT_EQ(sdm::from_e4m3(0x01), 0x1p-9F);
}

TEST(e4m3, rounds_to_the_nearest_and_ties_to_even) {
  std::vector<float> tried;
  for (unsigned code = 0; code < 0x7e; ++code) {
    const auto here = static_cast<float>(meaning(code));
    const auto half = static_cast<float>((meaning(code) + meaning(code + 1)) / 2);
    append(tried, {here, std::nextafter(here, 1000.0F), half, std::nextafter(half, 0.0F),
                   std::nextafter(half, 1000.0F)});
  }
  append(tried, random_values<float>(5000, 1, 448.0F));
  append(tried, random_values<float>(5000, 2, 0.05F));
  append(tried, {0x1p-10F, 0x1p-140F, 448.0F, 0.0F});
  for (const float x : tried) {
    ASSERT_EQ(sdm::to_e4m3(x), nearest_code(static_cast<double>(x))) << x;
    ASSERT_EQ(sdm::to_e4m3(-x), nearest_code(-static_cast<double>(x))) << -x;
  }
}

TEST(e4m3, takes_what_is_too_large_for_the_largest) {
  for (const float x : {448.1F, 464.0F, 1e30F, std::numeric_limits<float>::infinity()}) {
    EXPECT_EQ(sdm::to_e4m3(x), 0x7e);
    EXPECT_EQ(sdm::to_e4m3(-x), 0xfe);
  }
}

TEST(int4, rounds_to_the_nearest_and_ties_to_even) {
  for (int value = -7; value <= 7; ++value) {
    const auto x = static_cast<float>(value);
    EXPECT_EQ(sdm::from_int4(sdm::to_int4(x)), x);
    EXPECT_EQ(sdm::to_int4(x), static_cast<unsigned>(value) & 15U);
  }
  for (float x = -7.5F; x <= 7.5F; x += 0x1p-4F) {
    const auto want =
        static_cast<float>(std::clamp(std::nearbyint(static_cast<double>(x)), -7.0, 7.0));
    EXPECT_EQ(sdm::from_int4(sdm::to_int4(x)), want) << x;
  }
}

TEST(saved_rows, take_as_many_bytes_as_is_documented) {
  EXPECT_EQ(row_bytes(saved_rows::as_stored, 768, 2), 1536);
  EXPECT_EQ(row_bytes(saved_rows::as_stored, 5, 4), 32);
  EXPECT_EQ(row_bytes(saved_rows::fp8, 768, 2), 768 + 16);
  EXPECT_EQ(row_bytes(saved_rows::fp8, 17, 4), 32 + 16);
  EXPECT_EQ(row_bytes(saved_rows::int4, 768, 2), 384 + 96);
  EXPECT_EQ(row_bytes(saved_rows::int4, 33, 4), 32 + 16);
  EXPECT_EQ(row_bytes(saved_rows::int4, 1, 4), 16 + 16);
}

float scale_at(const std::vector<std::uint8_t>& row, std::size_t at_byte) {
  float scale = 0;
  std::memcpy(&scale, &row[at_byte], sizeof scale);
  return scale;
}

// A saved row read as its layout is documented.
doubles numbers_of(saved_rows format, const std::vector<std::uint8_t>& row, std::size_t width) {
  doubles out;
  for (std::size_t j = 0; j < width; ++j) {
    if (format == saved_rows::fp8) {
      const float scale = scale_at(row, (width + 15) / 16 * 16);
      out.push_back(static_cast<double>(static_cast<float>(meaning(row[j])) * scale));
    } else {
      const std::size_t codes = ((width + 1) / 2 + 15) / 16 * 16;
      const float scale = scale_at(row, codes + 4 * (j / 32));
      const int nibble = row[j / 2] >> (j % 2 * 4) & 15;
      out.push_back(
          static_cast<double>(static_cast<float>(nibble < 8 ? nibble : nibble - 16) * scale));
    }
  }
  return out;
}

// One token writes to slots 0, 1, ... of a bank with these rows; each is saved, and rewound.
template <class B>
struct round_trip {
  std::vector<std::vector<std::uint8_t>> saved;
  std::vector<B> rewound;

  round_trip(op_bench& bench, saved_rows format, const doubles& rows, std::size_t width,
             place where) {
    const auto count = static_cast<std::int64_t>(rows.size() / width);
    chunk_case c{{.streams = 1,
                  .slots = count,
                  .width = static_cast<std::int64_t>(width),
                  .tokens = 1,
                  .writes = count,
                  .reads = 1,
                  .decays = 1,
                  .chunk = 1},
                 51};
    c.bank = rows;
    const auto forward = sdm_chunk::run_forward<B>(bench, c, format, where);
    rewound = sdm_chunk::run_backward<B, B>(bench, c, forward, format, where).bank;
    const std::size_t stride = forward.saved.size() / at(count);
    for (std::size_t row = 0; row < at(count); ++row) {
      saved.push_back(row_of(forward.saved, row, stride));
    }
  }
};

class saved_rows_on : public op_on_device {};
INSTANTIATE_TEST_SUITE_P(devices, saved_rows_on, testing::ValuesIn(plain_devices()), device_case);

const std::array<saved_rows, 2> quantised{saved_rows::fp8, saved_rows::int4};

// Half a step of e4m3 is 2^-4 of a number and at least 2^-10 of the scale; of int4, half its scale.
double most_off(saved_rows format, double x, double largest) {
  if (format == saved_rows::int4) return largest / 7 / 2;
  return std::max(std::abs(x) * 0x1p-4, largest / 448 * 0x1p-10);
}

template <class B>
void expect_quantised(op_bench& bench, saved_rows format, std::size_t width) {
  const double slack = std::is_same_v<B, bf16> ? 0x1p-8 : 0x1p-20;
  chunk_case drawn{{.streams = 1,
                    .slots = 7,
                    .width = static_cast<std::int64_t>(width),
                    .tokens = 1,
                    .chunk = 1},
                   52};
  doubles rows = drawn.bank;
  for (std::size_t j = 0; j < width; ++j) rows[j] *= 0x1p-60;  // each row has a scale of its own
  for (std::size_t j = width; j < 2 * width; ++j) rows[j] *= 0x1p40;
  for (const place where : {place::aligned, place::shifted}) {
    const round_trip<B> got{bench, format, rows, width, where};
    for (std::size_t row = 0; row < 7; ++row) {
      const doubles said = numbers_of(format, got.saved[row], width);
      const std::size_t group = format == saved_rows::fp8 ? width : 32;
      for (std::size_t j = 0; j < width; ++j) {
        const std::size_t first = j / group * group;
        double largest = 0;
        for (std::size_t i = first; i < std::min(first + group, width); ++i) {
          largest = std::max(largest, std::abs(rows[row * width + i]));
        }
        const double x = rows[row * width + j];
        const double y = sdm_chunk::number(got.rewound[row * width + j]);
        ASSERT_LE(std::abs(y - x), most_off(format, x, largest) + slack * std::abs(x))
            << row << ", " << j;
        ASSERT_LE(std::abs(y - said[j]), slack * std::abs(said[j])) << row << ", " << j;
      }
    }
  }
}

TEST_P(saved_rows_on, come_back_within_the_rounding_of_their_codes) {
  for (const saved_rows format : quantised) {
    for (const std::size_t width : {1U, 5U, 8U, 31U, 256U, 300U, 768U}) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(format) << " of " << width);
      expect_quantised<float>(bench(), format, width);
      expect_quantised<bf16>(bench(), format, width);
    }
  }
}

TEST(saved_rows, of_an_f64_bank_are_rounded_to_f32_first) {
  op_bench bench{"cpu"};
  for (const saved_rows format : quantised) {
    for (const std::size_t width : {5U, 300U}) expect_quantised<double>(bench, format, width);
  }
}

TEST_P(saved_rows_on, of_zeros_come_back_as_zeros) {
  for (const saved_rows format : quantised) {
    for (const std::size_t width : {7U, 264U}) {
      doubles rows(2 * width, 0.0);
      rows[width] = -0.0;
      const round_trip<float> got{bench(), format, rows, width, place::aligned};
      for (const float x : got.rewound) EXPECT_EQ(x, 0.0F);
      const std::size_t scales =
          format == saved_rows::fp8 ? (width + 15) / 16 * 16 : ((width + 1) / 2 + 15) / 16 * 16;
      EXPECT_EQ(scale_at(got.saved[0], scales), 0.0F);
    }
  }
}

// fp8 has one scale a row; int4 one for each 32 columns.
TEST_P(saved_rows_on, come_back_as_nans_where_they_share_a_scale_with_a_nan_or_an_infinity) {
  for (const saved_rows format : quantised) {
    for (const double bad :
         {std::nan(""), static_cast<double>(INFINITY), -static_cast<double>(INFINITY)}) {
      for (const std::size_t width : {40U, 300U}) {
        doubles rows(2 * width, 1.0);
        rows[35] = bad;
        for (const place where : {place::aligned, place::shifted}) {
          const round_trip<float> got{bench(), format, rows, width, where};
          for (std::size_t j = 0; j < 2 * width; ++j) {
            const bool shares = j < width && (format == saved_rows::fp8 || j / 32 == 1);
            if (shares) {
              ASSERT_TRUE(std::isnan(got.rewound[j])) << j;
            } else {
              ASSERT_EQ(got.rewound[j], 1.0F) << j;
            }
          }
        }
      }
    }
  }
}

// Where the scale is no normal number it is coarse, or 0; codes are never those of NaN.
TEST_P(saved_rows_on, of_the_smallest_numbers_come_back_near_to_zero) {
  for (const saved_rows format : quantised) {
    for (const float x : {0x1p-149F, 0x1.8p-143F, 0x1p-140F, 0x1p-126F}) {
      const round_trip<float> got{bench(), format, doubles(16, static_cast<double>(x)), 8,
                                  place::aligned};
      for (const float y : got.rewound) {
        EXPECT_GE(y, 0.0F);
        EXPECT_LE(y, 1.5F * x + 0x1p-140F);
      }
    }
  }
}

TEST_P(saved_rows_on, leave_their_padding_alone) {
  const std::size_t width = 37;
  for (const saved_rows format : quantised) {
    const std::size_t codes = format == saved_rows::fp8 ? width : (width + 1) / 2;
    const std::size_t scales = format == saved_rows::fp8 ? 1 : 2;
    for (const place where : {place::aligned, place::shifted}) {
      const round_trip<float> got{bench(), format, doubles(2 * width, 3.0), width, where};
      for (std::size_t i = 0; i < got.saved[1].size(); ++i) {
        const std::size_t begin = (codes + 15) / 16 * 16;
        const bool is_padding = i < begin ? i >= codes : i >= begin + 4 * scales;
        EXPECT_EQ(got.saved[1][i] == poison<std::uint8_t>(), is_padding) << i;
      }
    }
  }
}

}  // namespace
}  // namespace reprise::test
