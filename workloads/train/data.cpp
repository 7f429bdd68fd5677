#include "workloads/train/data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <string>
#include <system_error>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/formats/idx.hpp"
#include "reprise/formats/printable.hpp"
#include "reprise/ops/philox.hpp"

namespace reprise::train {

namespace {

// Apart from the blocks that parameters are drawn from under the same seed.
constexpr std::uint64_t of_orders = std::uint64_t{1} << 61;

constexpr std::string_view remedy =
    "install Debian's package dataset-fashion-mnist, or give the folder of its files with --data";

[[noreturn]] void refuse(const std::filesystem::path& folder, std::string_view what) {
  throw usage_error{
      fmt::format("data {}: {}; {}", formats::quoted_name(folder.string()), what, remedy)};
}

std::string images_of(std::string_view part) {
  return std::string{part} + "-images-idx3-ubyte";
}
std::string labels_of(std::string_view part) {
  return std::string{part} + "-labels-idx1-ubyte";
}

// Where it may lie, the one that is taken first in front.
std::array<std::filesystem::path, 2> ways_to_lie(const std::filesystem::path& folder,
                                                 const std::string& name) {
  return {folder / (name + ".gz"), folder / name};
}

idx_array read_part(const std::filesystem::path& folder, const std::string& name) {
  std::error_code ignored;
  for (const std::filesystem::path& file : ways_to_lie(folder, name)) {
    if (std::filesystem::exists(file, ignored)) return read_idx(file);
  }
  refuse(folder, fmt::format("there is no {}.gz and no {}", name, name));
}

}  // namespace

image_set read_images(const std::filesystem::path& folder, std::string_view part,
                      std::int64_t most) {
  idx_array images = read_part(folder, images_of(part));
  idx_array labels = read_part(folder, labels_of(part));
  const auto count = static_cast<std::int64_t>(labels.elements.size());
  if (labels.shape.size() != 1 || count == 0 ||
      images.shape != std::vector<std::int64_t>{count, image_side, image_side}) {
    refuse(folder, fmt::format("the images of '{}' are not 28 x 28 with a label each", part));
  }
  if (std::ranges::any_of(labels.elements, [](std::uint8_t one) { return one >= classes; })) {
    refuse(folder, fmt::format("a label of '{}' is none of the ten classes", part));
  }
  if (most > count) {
    refuse(folder, fmt::format("'{}' has {} images, and {} are asked for", part, count, most));
  }
  const std::int64_t kept = most == 0 ? count : most;
  images.elements.resize(static_cast<std::size_t>(kept * image_pixels));
  labels.elements.resize(static_cast<std::size_t>(kept));
  return {std::move(images.elements), std::move(labels.elements)};
}

std::vector<std::filesystem::path> files_of(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> all;
  for (const char* const part : {"train", "t10k"}) {
    for (const std::string& name : {images_of(part), labels_of(part)}) {
      std::ranges::copy(ways_to_lie(folder, name), std::back_inserter(all));
    }
  }
  return all;
}

image_batch batch_of(const image_set& images, std::span<const std::uint32_t> which,
                     bool with_labels) {
  image_batch made;
  made.rows = static_cast<std::int64_t>(which.size());
  made.pixels.reserve(which.size() * image_pixels);
  made.masks.reserve(which.size() * image_pixels);
  for (const std::uint32_t image : which) {
    const std::uint8_t* const from = images.pixels.data() + std::size_t{image} * image_pixels;
    for (std::int64_t i = 0; i < image_pixels; ++i) {
      made.pixels.push_back(static_cast<float>(from[i]) / 255.0F);
      made.masks.push_back(from[i] >= foreground ? 1.0F : 0.0F);
    }
    if (with_labels) made.labels.push_back(images.labels[image]);
  }
  return made;
}

std::vector<std::uint32_t> order_of(std::int64_t count, std::uint64_t seed, std::uint64_t epoch) {
  std::vector<std::uint32_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0U);
  for (std::size_t left = order.size(); left > 1; --left) {
    const ops::philox_words drawn = ops::philox(seed, left, of_orders + epoch);
    const std::uint64_t number = std::uint64_t{drawn.at[1]} << 32 | drawn.at[0];
    std::swap(order[left - 1], order[number % left]);
  }
  return order;
}

}  // namespace reprise::train
