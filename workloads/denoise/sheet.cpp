#include "workloads/denoise/sheet.hpp"

#include <algorithm>
#include <cstdint>

namespace reprise::denoise {

namespace {

constexpr std::int64_t magnified = 2;
constexpr std::int64_t line = 2;
constexpr std::uint8_t line_grey = 96;

std::uint8_t grey_of(float value) {
  const float level = (value + 1.0F) * 127.5F + 0.5F;
  return static_cast<std::uint8_t>(level >= 0.0F ? std::min(level, 255.0F) : 0.0F);
}

}  // namespace

grey_picture sheet_of(const std::vector<std::vector<float>>& images,
                      const denoiser_config& config) {
  const std::int64_t cell_width = config.columns * magnified + line;
  const std::int64_t cell_height = config.rows * magnified + line;
  std::int64_t most = 0;
  for (const auto& of_request : images) {
    most = std::max(most, static_cast<std::int64_t>(of_request.size()) / config.pixels());
  }
  grey_picture sheet{
      most * cell_width + line, static_cast<std::int64_t>(images.size()) * cell_height + line, {}};
  sheet.pixels.assign(static_cast<std::size_t>(sheet.width * sheet.height), line_grey);
  for (std::size_t row = 0; row < images.size(); ++row) {
    for (std::size_t i = 0; i < images[row].size(); ++i) {
      const auto element = static_cast<std::int64_t>(i);
      const std::int64_t image = element / config.pixels();
      const std::int64_t pixel = element % config.pixels();
      const std::int64_t left = line + image * cell_width + pixel % config.columns * magnified;
      const std::int64_t top =
          line + static_cast<std::int64_t>(row) * cell_height + pixel / config.columns * magnified;
      for (std::int64_t y = top; y < top + magnified; ++y) {
        for (std::int64_t x = left; x < left + magnified; ++x) {
          sheet.pixels[static_cast<std::size_t>(y * sheet.width + x)] = grey_of(images[row][i]);
        }
      }
    }
  }
  return sheet;
}

}  // namespace reprise::denoise
