#include "workloads/train/picture.hpp"

#include <algorithm>
#include <cmath>

#include "workloads/train/data.hpp"
#include "workloads/train/letters.hpp"

namespace reprise::train {

namespace {

constexpr std::int64_t magnified = 4;
constexpr std::int64_t side = image_side * magnified;
constexpr std::int64_t dot = 2;     // of letters
constexpr std::int64_t margin = 3;  // around letters
constexpr std::int64_t gap = 8;     // between cells, and at the edges
constexpr std::int64_t caption = letter_height * dot + 2 * margin;
constexpr std::int64_t cell_width = 2 * side + gap;
constexpr std::int64_t cell_height = side + caption + gap;
constexpr std::uint8_t ground = 64;

std::uint8_t grey_of(float logit) {
  const float level = 255.0F / (1.0F + std::exp(-logit)) + 0.5F;
  return static_cast<std::uint8_t>(level >= 0.0F ? std::min(level, 255.0F) : 0.0F);
}

void fill(grey_picture& into, std::int64_t left, std::int64_t top, std::int64_t width,
          std::int64_t height, std::uint8_t grey) {
  for (std::int64_t y = top; y < top + height; ++y) {
    std::fill_n(into.pixels.begin() + y * into.width + left, width, grey);
  }
}

template <class GreyAt>
void draw_image(grey_picture& into, std::int64_t left, std::int64_t top, const GreyAt& grey_at) {
  for (std::int64_t i = 0; i < image_pixels; ++i) {
    fill(into, left + i % image_side * magnified, top + i / image_side * magnified, magnified,
         magnified, grey_at(static_cast<std::size_t>(i)));
  }
}

void write_class(grey_picture& into, std::int64_t left, std::int64_t top, std::int32_t label,
                 bool is_wrong) {
  const std::uint8_t paper = is_wrong ? 255 : ground;
  fill(into, left, top, side, caption, paper);
  const std::string_view name = class_names.at(static_cast<std::size_t>(label));
  draw_text(into, left + (side - text_width(name, dot)) / 2, top + margin, name, dot,
            is_wrong ? 0 : 255);
}

}  // namespace

grey_picture picture_of(std::span<const prediction> shown, std::int64_t columns) {
  const auto count = static_cast<std::int64_t>(shown.size());
  columns = std::clamp<std::int64_t>(count, 1, columns);
  const std::int64_t rows = (count + columns - 1) / columns;
  grey_picture into{columns * cell_width + gap, rows * cell_height + gap, {}};
  into.pixels.assign(static_cast<std::size_t>(into.width * into.height), ground);
  for (std::int64_t i = 0; i < count; ++i) {
    const prediction& one = shown[static_cast<std::size_t>(i)];
    const std::int64_t left = gap + i % columns * cell_width;
    const std::int64_t top = gap + i / columns * cell_height;
    draw_image(into, left, top, [&](std::size_t at) { return one.pixels[at]; });
    draw_image(into, left + side, top, [&](std::size_t at) { return grey_of(one.mask[at]); });
    write_class(into, left, top + side, one.label, false);
    write_class(into, left + side, top + side, one.predicted, one.predicted != one.label);
  }
  return into;
}

}  // namespace reprise::train
