// Fashion-MNIST (Xiao, Rasul and Vollgraf, 2017) as it lies in its folder, and micro-batches of it.
//
// The files are those of Debian's package dataset-fashion-mnist, packed with gzip or plain. All of
// it is done on the host; safe from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace reprise::train {

inline constexpr std::int64_t image_side = 28;
inline constexpr std::int64_t image_pixels = image_side * image_side;
// In the order of their numbers; "ankle boot" is short enough to be written below an image.
inline constexpr std::array<std::string_view, 10> class_names{
    "t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "boot"};
inline constexpr auto classes = static_cast<std::int64_t>(class_names.size());

// Where the package puts its files.
inline constexpr std::string_view packaged_data = "/usr/share/datasets/fashion-mnist";

struct image_set {
  std::vector<std::uint8_t> pixels;  // [count, 784]; 0 is background
  std::vector<std::uint8_t> labels;  // [count], each below 10

  std::int64_t count() const { return static_cast<std::int64_t>(labels.size()); }
};

// The first `most` images of PART-images-idx3-ubyte and PART-labels-idx1-ubyte, with or without
// .gz; 0: all of them. PART is "train" or "t10k". Throws usage_error, one line that says what to
// do, where a file is missing or broken, or images and labels are not those of this data set, or
// are fewer than `most`.
image_set read_images(const std::filesystem::path& folder, std::string_view part,
                      std::int64_t most = 0);

// The files of a folder that a data set may be read from, whether they are there or not.
std::vector<std::filesystem::path> files_of(const std::filesystem::path& folder);

// What a model is given for some images, and what it should say.
struct image_batch {
  std::vector<float> pixels;         // [rows, 784], from 0 to 1
  std::vector<float> masks;          // [rows, 784]: 1 where a pixel belongs to the clothes
  std::vector<std::int32_t> labels;  // [rows]; empty: nobody says
  std::int64_t rows = 0;
};

// A pixel is foreground from this byte on: paler ones are noise of the scan around the clothes.
inline constexpr std::uint8_t foreground = 32;

image_batch batch_of(const image_set& images, std::span<const std::uint32_t> which,
                     bool with_labels);

// All numbers below `count` in the order in which an epoch takes the images: a function of the
// seed and the epoch alone, by Fisher and Yates.
std::vector<std::uint32_t> order_of(std::int64_t count, std::uint64_t seed, std::uint64_t epoch);

}  // namespace reprise::train
