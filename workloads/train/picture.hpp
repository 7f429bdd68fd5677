// A picture of what the model says of some images: each image, and beside it the mask that was
// predicted; below, which class it is and which one was predicted. A wrong one is black on white.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reprise/formats/png.hpp"

namespace reprise::train {

struct prediction {
  std::vector<std::uint8_t> pixels;  // [784], of the image
  std::vector<float> mask;           // [784] logits: above 0 is foreground
  std::int32_t label = 0;            // what it is
  std::int32_t predicted = 0;        // what the model says; both are classes
};

// Row by row, `columns` of them beside one another at most.
grey_picture picture_of(std::span<const prediction> shown, std::int64_t columns = 5);

}  // namespace reprise::train
