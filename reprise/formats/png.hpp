// Pictures of 8-bit greys as PNG, written by libpng.
//
// Called by workloads that show images. Stateless, safe from any thread; the cost is zlib's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

namespace reprise {

// Row major, 0 is black.
struct grey_picture {
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::vector<std::uint8_t> pixels;  // width * height of them
};

// Wider or higher is refused: no viewer is asked to hold more.
inline constexpr std::int64_t max_picture_side = 65535;

// The bytes of a PNG file. Throws usage_error when the picture has no pixels, too many, or not as
// many as its sides say.
std::vector<std::byte> encode_png(const grey_picture& picture);

// Writes the file whole or not at all: into a file beside it, which then takes its name. Throws
// usage_error as above and where the target is no regular file; error when it cannot be written.
void write_png(const std::filesystem::path& file, const grey_picture& picture);

}  // namespace reprise
