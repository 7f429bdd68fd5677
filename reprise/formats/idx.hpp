// An idx file (the format of MNIST and of those data sets that follow it), read whole: an array of
// bytes and its shape. Plain or packed with gzip, told apart by the first bytes.
//
//   bytes    what
//   0-1      zero
//   2        the element type: 0x08, unsigned bytes, is the one that is built
//   3        how many dimensions there are
//   4-       a big-endian 32-bit size for each of them, then the elements, row major
//
// (LeCun, Cortes and Burges, "The MNIST database of handwritten digits".) Memory grows with the
// bytes that are there and not with those that the header promises. Safe from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace reprise {

// More than any data set of this format has; what is larger is refused before it is read.
inline constexpr std::size_t max_idx_elements = std::size_t{256} << 20;

struct idx_array {
  std::vector<std::int64_t> shape;
  std::vector<std::uint8_t> elements;  // as many as the shape says
};

// Throws usage_error, one line that names the file, when it is missing, cannot be read, or breaks
// the format: an unknown type, too few or too many bytes, or a broken gzip stream.
idx_array read_idx(const std::filesystem::path& path);

// The same, of a file's bytes. `file_name` is for messages.
idx_array parse_idx(std::span<const std::byte> bytes, std::string_view file_name);

}  // namespace reprise
