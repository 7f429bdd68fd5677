// Tensors as a safetensors file, written; safetensors_header.hpp has the format.
//
// Stateless, safe from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "reprise/base/dtype.hpp"

namespace reprise::formats {

struct tensor_to_write {
  std::string name;  // UTF-8
  dtype type;
  std::vector<std::int64_t> shape;  // row major
  std::vector<std::byte> bytes;     // little endian; as many as the shape says
};

// In the order given, without gaps, which the format forbids; the data begins at a multiple of 8.
// The file is there whole or not at all. Throws error where it cannot be written; usage_error where
// a name comes twice or is no UTF-8, and where bytes and shape differ.
void write_safetensors(const std::filesystem::path& file,
                       const std::vector<tensor_to_write>& tensors);

}  // namespace reprise::formats
