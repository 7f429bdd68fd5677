// The picture of predictions: what lies where, letters for every class name, and a file that
// decodes to the same pixels.
#include "workloads/train/picture.hpp"

#include <gtest/gtest.h>
#include <png.h>

#include <limits>
#include <set>

#include "workloads/train/data.hpp"
#include "workloads/train/letters.hpp"

namespace reprise {
namespace {

using train::prediction;

std::uint8_t at(const grey_picture& picture, std::int64_t x, std::int64_t y) {
  return picture.pixels[static_cast<std::size_t>(y * picture.width + x)];
}

prediction half_white(std::int32_t label, std::int32_t predicted) {
  prediction one;
  one.pixels.assign(784, 0);
  for (std::size_t i = 0; i < 392; ++i) one.pixels[i] = 255;
  one.mask.assign(784, -100.0F);
  one.mask[783] = 100;
  one.mask[782] = 0;
  one.label = label;
  one.predicted = predicted;
  return one;
}

std::set<std::uint8_t> greys_of(const grey_picture& picture, std::int64_t left, std::int64_t top,
                                std::int64_t width, std::int64_t height) {
  std::set<std::uint8_t> greys;
  for (std::int64_t y = top; y < top + height; ++y) {
    for (std::int64_t x = left; x < left + width; ++x) greys.insert(at(picture, x, y));
  }
  return greys;
}

constexpr std::int64_t first = 8;    // where the first image begins, both ways
constexpr std::int64_t side = 112;   // of an image
constexpr std::int64_t under = 20;   // the strip with the names
constexpr std::int64_t ground = 64;  // the grey between

TEST(a_picture, has_image_and_mask_side_by_side_and_names_below) {
  const std::vector<prediction> shown{half_white(0, 0), half_white(3, 9)};
  const grey_picture picture = train::picture_of(shown);
  EXPECT_EQ(picture.width, 2 * (2 * side + first) + first);
  EXPECT_EQ(picture.height, side + under + 2 * first);
  EXPECT_EQ(at(picture, first, first), 255) << "the image's upper half is white";
  EXPECT_EQ(at(picture, first + side - 1, first + side / 2 - 1), 255);
  EXPECT_EQ(at(picture, first, first + side / 2), 0);
  EXPECT_EQ(at(picture, first + side, first), 0) << "no foreground by the mask";
  EXPECT_EQ(at(picture, first + 2 * side - 1, first + side - 1), 255) << "but for its last pixel";
  EXPECT_EQ(at(picture, first + 2 * side - 5, first + side - 1), 128) << "nobody knows";
  EXPECT_EQ(at(picture, 0, 0), ground);
  EXPECT_EQ(at(picture, first + 2 * side, first), ground);
}

TEST(a_picture, shows_a_wrong_class_black_on_white) {
  const std::vector<prediction> shown{half_white(3, 3), half_white(3, 9)};
  const grey_picture picture = train::picture_of(shown);
  const std::int64_t next = first + 2 * side + first;
  const std::set<std::uint8_t> on_ground{ground, 255};
  const std::set<std::uint8_t> on_white{0, 255};
  EXPECT_EQ(greys_of(picture, first, first + side, side, under), on_ground);
  EXPECT_EQ(greys_of(picture, first + side, first + side, side, under), on_ground);
  EXPECT_EQ(greys_of(picture, next, first + side, side, under), on_ground);
  EXPECT_EQ(greys_of(picture, next + side, first + side, side, under), on_white);
}

TEST(a_picture, goes_on_in_another_row) {
  const std::vector<prediction> shown(5, half_white(1, 1));
  const grey_picture picture = train::picture_of(shown, 2);
  EXPECT_EQ(picture.width, 2 * (2 * side + first) + first);
  EXPECT_EQ(picture.height, 3 * (side + under + first) + first);
  EXPECT_EQ(at(picture, first, first + 2 * (side + under + first)), 255) << "the fifth";
  EXPECT_EQ(at(picture, first + 2 * side + first, first + 2 * (side + under + first)), ground);
}

TEST(a_picture, takes_any_mask) {
  prediction one = half_white(0, 0);
  one.mask[0] = std::numeric_limits<float>::quiet_NaN();
  one.mask[1] = std::numeric_limits<float>::infinity();
  const grey_picture picture = train::picture_of(std::vector{one});
  EXPECT_EQ(at(picture, first + side, first), 0);
  EXPECT_EQ(at(picture, first + side + 4, first), 255);
}

TEST(a_picture, comes_out_of_its_file_as_it_went_in) {
  const std::vector<prediction> shown{half_white(0, 2), half_white(4, 4)};
  const grey_picture picture = train::picture_of(shown);
  const std::vector<std::byte> file = encode_png(picture);
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  ASSERT_NE(png_image_begin_read_from_memory(&image, file.data(), file.size()), 0);
  EXPECT_EQ(static_cast<std::int64_t>(image.width), picture.width);
  EXPECT_EQ(static_cast<std::int64_t>(image.height), picture.height);
  image.format = PNG_FORMAT_GRAY;
  std::vector<std::uint8_t> pixels(PNG_IMAGE_SIZE(image));
  ASSERT_NE(png_image_finish_read(&image, nullptr, pixels.data(), 0, nullptr), 0);
  EXPECT_EQ(pixels, picture.pixels);
}

TEST(letters, are_there_for_every_class_name_and_differ) {
  std::set<std::vector<std::uint8_t>> drawn;
  std::set<char> used;
  for (const std::string_view name : train::class_names) {
    EXPECT_LE(train::text_width(name, 2), side) << name << " fits below its image";
    for (const char letter : name) {
      EXPECT_TRUE(train::has_letter(letter)) << letter;
      used.insert(letter);
      grey_picture one{5, 7, std::vector<std::uint8_t>(35)};
      train::draw_text(one, 0, 0, std::string_view{&letter, 1}, 1, 255);
      drawn.insert(one.pixels);
    }
  }
  EXPECT_EQ(drawn.size(), used.size());
  EXPECT_FALSE(train::has_letter('?'));
}

TEST(letters, keep_to_the_picture) {
  grey_picture small{3, 3, std::vector<std::uint8_t>(9)};
  train::draw_text(small, -4, -4, "bag?bag", 2, 255);
  train::draw_text(small, 2, 2, "shirt", 3, 255);
  EXPECT_EQ(small.pixels.size(), 9U);
}

}  // namespace
}  // namespace reprise
