#include "reprise/formats/png.hpp"

#include <fmt/format.h>
#include <png.h>

#include <string>
#include <system_error>

#include "reprise/base/error.hpp"
#include "reprise/formats/printable.hpp"
#include "reprise/formats/refusal.hpp"
#include "reprise/formats/whole_file.hpp"

namespace reprise {

namespace {

void check(const grey_picture& picture) {
  const auto fits = [](std::int64_t side) { return side >= 1 && side <= max_picture_side; };
  if (!fits(picture.width) || !fits(picture.height)) {
    throw usage_error{fmt::format("a picture of {} x {} pixels; give sides from 1 to {}",
                                  picture.width, picture.height, max_picture_side)};
  }
  const auto count = static_cast<std::size_t>(picture.width * picture.height);
  if (picture.pixels.size() != count) {
    throw usage_error{fmt::format("a picture of {} x {} has {} pixels; give {}", picture.width,
                                  picture.height, picture.pixels.size(), count)};
  }
}

}  // namespace

std::vector<std::byte> encode_png(const grey_picture& picture) {
  check(picture);
  png_image described{};
  described.version = PNG_IMAGE_VERSION;
  described.width = static_cast<png_uint_32>(picture.width);
  described.height = static_cast<png_uint_32>(picture.height);
  described.format = PNG_FORMAT_GRAY;
  std::vector<std::byte> bytes(PNG_IMAGE_PNG_SIZE_MAX(described));  // no encoding is larger
  png_alloc_size_t size = bytes.size();
  const int done = png_image_write_to_memory(&described, bytes.data(), &size, 0,
                                             picture.pixels.data(), 0, nullptr);
  if (done == 0) {
    throw error{fmt::format("libpng could not encode a picture of {} x {}: {}", picture.width,
                            picture.height, described.message)};
  }
  bytes.resize(size);
  return bytes;
}

void write_png(const std::filesystem::path& file, const grey_picture& picture) {
  const std::vector<std::byte> bytes = encode_png(picture);
  std::error_code ignored;
  if (std::filesystem::exists(file, ignored) && !std::filesystem::is_regular_file(file, ignored)) {
    formats::refuse(file.native(), "it is no regular file", "give a file name for the picture");
  }
  if (formats::write_whole(file, bytes)) return;
  throw error{
      fmt::format("{}: the picture cannot be written here; give a file in a folder that "
                  "takes one",
                  formats::quoted_name(file.native()))};
}

}  // namespace reprise
