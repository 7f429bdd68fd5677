// Pictures: libpng reads back what was written, and a file is written whole or not at all.
#include "reprise/formats/png.hpp"

#include <png.h>

#include <vector>

#include "tests/formats/support.hpp"

namespace reprise {
namespace {

grey_picture slope(std::int64_t width, std::int64_t height) {
  grey_picture picture{width, height, {}};
  for (std::int64_t i = 0; i < width * height; ++i) {
    picture.pixels.push_back(static_cast<std::uint8_t>(i * 5));
  }
  return picture;
}

grey_picture read_back(const std::vector<std::byte>& bytes) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  EXPECT_NE(png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()), 0);
  EXPECT_EQ(image.format, static_cast<png_uint_32>(PNG_FORMAT_GRAY));
  grey_picture picture{image.width, image.height, {}};
  picture.pixels.resize(PNG_IMAGE_SIZE(image));
  EXPECT_NE(png_image_finish_read(&image, nullptr, picture.pixels.data(), 0, nullptr), 0);
  return picture;
}

std::string contents(const std::filesystem::path& file) {
  std::ifstream in{file, std::ios::binary};
  return {std::istreambuf_iterator<char>{in}, {}};
}

TEST(png, is_read_back_as_it_was_written) {
  for (const auto& [width, height] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 1}, {1, 300}, {300, 1}, {33, 57}}) {
    const grey_picture picture = slope(width, height);
    const grey_picture again = read_back(encode_png(picture));
    EXPECT_EQ(again.width, width);
    EXPECT_EQ(again.height, height);
    EXPECT_EQ(again.pixels, picture.pixels);
  }
}

TEST(png, a_picture_that_is_none_is_refused) {
  EXPECT_NE(test::refusal([] { encode_png(slope(0, 5)); }).find("0 x 5"), std::string::npos);
  EXPECT_NE(test::refusal([] { encode_png(slope(5, 0)); }), "");
  EXPECT_NE(test::refusal([] { encode_png({65536, 1, {}}); }), "");
  EXPECT_NE(test::refusal([] { encode_png({-1, -1, {0}}); }), "");
  grey_picture short_one = slope(4, 4);
  short_one.pixels.pop_back();
  EXPECT_NE(test::refusal([&] { encode_png(short_one); }).find("15 pixels"), std::string::npos);
}

TEST(png, a_file_is_replaced_whole) {
  const test::scratch_folder folder;
  const auto file = folder.write("sheet.png", "what was there before");
  write_png(file, slope(7, 9));
  const std::vector<std::byte> expected = encode_png(slope(7, 9));
  EXPECT_EQ(contents(file),
            std::string(reinterpret_cast<const char*>(expected.data()), expected.size()));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator{folder.path()}, {}), 1)
      << "something was left beside it";
}

TEST(png, a_file_that_cannot_be_written_is_refused_and_leaves_nothing) {
  const test::scratch_folder folder;
  const auto nowhere = folder.path() / "none" / "sheet.png";
  const std::string line = test::failure([&] { write_png(nowhere, slope(2, 2)); });
  EXPECT_NE(line.find("sheet.png\": the picture cannot be written here"), std::string::npos)
      << line;
  std::filesystem::create_directory(folder.path() / "taken.png");
  EXPECT_NE(test::refusal([&] { write_png(folder.path() / "taken.png", slope(2, 2)); }), "");
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "taken.png.partial"));
  const auto kept = folder.write("kept.png", "as it was");
  EXPECT_NE(test::refusal([&] { write_png(kept, {2, 2, {0}}); }), "");
  EXPECT_EQ(contents(kept), "as it was");
}

}  // namespace
}  // namespace reprise
