// A sheet of images: one row for each request.
#pragma once

#include <vector>

#include "reprise/formats/png.hpp"
#include "workloads/denoise/denoiser_config.hpp"

namespace reprise::denoise {

// images[r]: those of request r, [images, pixels] with -1 for black and 1 for white; beyond them is
// cut off. Each pixel becomes a square of two by two; images stand apart by a grey line.
grey_picture sheet_of(const std::vector<std::vector<float>>& images, const denoiser_config& config);

}  // namespace reprise::denoise
