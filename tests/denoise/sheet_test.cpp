#include "workloads/denoise/sheet.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace reprise {
namespace {

denoise::denoiser_config two_by_two() {
  denoise::denoiser_config config;
  config.rows = 2;
  config.columns = 2;
  return config;
}

std::uint8_t at(const grey_picture& sheet, std::int64_t x, std::int64_t y) {
  return sheet.pixels[static_cast<std::size_t>(y * sheet.width + x)];
}

TEST(a_sheet, has_a_row_for_each_request_and_a_line_between_images) {
  const grey_picture sheet =
      denoise::sheet_of({{-1, 1, 0, -1}, {1, 1, 1, 1, -1, -1, -1, -1}}, two_by_two());
  EXPECT_EQ(sheet.width, 2 + 2 * (4 + 2));
  EXPECT_EQ(sheet.height, 2 + 2 * (4 + 2));
  EXPECT_EQ(at(sheet, 2, 2), 0);
  EXPECT_EQ(at(sheet, 3, 3), 0) << "a pixel is a square of four";
  EXPECT_EQ(at(sheet, 4, 2), 255);
  EXPECT_EQ(at(sheet, 2, 4), 128);
  EXPECT_EQ(at(sheet, 8, 8), 0) << "the second image of the second request";
  EXPECT_EQ(at(sheet, 2, 8), 255);
  EXPECT_EQ(at(sheet, 0, 0), at(sheet, 8, 2)) << "where there is no image there is the line's grey";
}

TEST(a_sheet, cuts_off_what_is_beyond_black_and_white) {
  const float infinity = std::numeric_limits<float>::infinity();
  const grey_picture sheet =
      denoise::sheet_of({{-7, 9, infinity, std::numeric_limits<float>::quiet_NaN()}}, two_by_two());
  EXPECT_EQ(at(sheet, 2, 2), 0);
  EXPECT_EQ(at(sheet, 4, 2), 255);
  EXPECT_EQ(at(sheet, 2, 4), 255);
  EXPECT_EQ(at(sheet, 4, 4), 0);
}

}  // namespace
}  // namespace reprise
