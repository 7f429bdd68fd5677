// What a denoiser is: its sizes and the names of its classes, out of its config.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace reprise::denoise {

struct denoiser_config {
  std::int64_t rows = 0;     // of an image, in pixels
  std::int64_t columns = 0;  // likewise
  std::vector<std::string> class_names;
  std::int64_t width = 0;            // of the residual stream
  std::int64_t inner_width = 0;      // of a block's two layers
  std::int64_t condition_width = 0;  // of what says time and class to the blocks
  std::int64_t time_width = 0;       // of the sinusoidal embedding; even
  std::int64_t blocks = 0;
  float norm_epsilon = 0;

  std::int64_t pixels() const { return rows * columns; }
  std::int64_t classes() const { return static_cast<std::int64_t>(class_names.size()); }
  // The row behind those of the classes: "no class", the other branch of guidance.
  std::int32_t null_class() const { return static_cast<std::int32_t>(class_names.size()); }
};

// Throws usage_error, one line that names the file and the field, when the file is missing or no
// JSON, a field is missing or out of range, or the architecture is one that is not built.
denoiser_config read_denoiser_config(const std::filesystem::path& file);

}  // namespace reprise::denoise
