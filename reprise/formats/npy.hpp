// Arrays as npy files, written: what numpy.load reads.
//
//   bytes   what
//   0-7     0x93 "NUMPY", version 1.0
//   8-9     length of the header, little endian
//   10-     a Python dictionary, spaces and a line end, up to a multiple of 64; then the elements
//
// (NEP 1, "A Simple File Format for NumPy Arrays".) Stateless, safe from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "reprise/base/dtype.hpp"

namespace reprise::formats {

// The bytes of the file up to its elements. Throws usage_error for bf16, which npy has no name for.
std::vector<std::byte> npy_header(dtype type, std::span<const std::int64_t> shape);

// Row major, little endian; as many bytes as the shape says. The file is there whole or not at all.
// Throws error where it cannot be written, and usage_error as above.
void write_npy(const std::filesystem::path& file, dtype type, std::span<const std::int64_t> shape,
               std::span<const std::byte> bytes);

}  // namespace reprise::formats
