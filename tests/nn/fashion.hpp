// A little of Fashion-MNIST (tests/data/fashion-mnist) as small images, for tests that train: each
// pixel is the mean of 2x2 of the file's, on [0, 1].
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "reprise/formats/idx.hpp"
#include "tests/support/paths.hpp"

namespace reprise::test {

inline constexpr std::int64_t small_pixels = 14 * 14;

struct fashion_images {
  std::vector<float> pixels;          // [count, small_pixels]
  std::vector<std::int32_t> classes;  // [count], 0 to 9

  std::int64_t count() const { return static_cast<std::int64_t>(classes.size()); }
};

// `part` is "train" or "t10k".
inline fashion_images read_fashion(const std::string& part) {
  const std::filesystem::path folder = source_dir() / "tests" / "data" / "fashion-mnist";
  const idx_array images = read_idx(folder / (part + "-images-idx3-ubyte.gz"));
  const idx_array labels = read_idx(folder / (part + "-labels-idx1-ubyte.gz"));
  const auto count = static_cast<std::int64_t>(labels.elements.size());
  if (images.shape != std::vector<std::int64_t>{count, 28, 28}) {
    throw std::runtime_error{"images and labels do not belong together"};
  }
  fashion_images read;
  read.classes.assign(labels.elements.begin(), labels.elements.end());
  for (std::size_t image = 0; image < labels.elements.size(); ++image) {
    for (std::size_t row = 0; row < 28; row += 2) {
      for (std::size_t column = 0; column < 28; column += 2) {
        const std::size_t at = image * 28 * 28 + row * 28 + column;
        const int sum = images.elements[at] + images.elements[at + 1] + images.elements[at + 28] +
                        images.elements[at + 29];
        read.pixels.push_back(static_cast<float>(sum) / (4 * 255.0F));
      }
    }
  }
  return read;
}

}  // namespace reprise::test
