// A safetensors file, open for reading: named tensors whose bytes lie in a mapping of the file.
//
// Called by model_files, and by whoever has a single file. Opening reads and checks the header and
// touches none of the data, so a file may be larger than memory. Reading is safe from any thread;
// moving is not, while others read. The file must not be cut while it is open (mapped_file.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "reprise/base/dtype.hpp"
#include "reprise/formats/mapped_file.hpp"
#include "reprise/formats/safetensors_header.hpp"

namespace reprise {

// A tensor in an open file. Row major, little endian. The format does not align data: `bytes` may
// begin at any address, so elements are copied out (memcpy) and not read in place.
struct stored_tensor {
  std::string name;
  dtype type;
  std::vector<std::int64_t> shape;   // empty for a scalar
  std::span<const std::byte> bytes;  // elements x size_of(type); good while the file is open
};

// Move-only. Tensors keep their addresses, and their bytes, when the file moves.
class safetensors_file {
 public:
  // Throws usage_error, one line, when the file is missing, cannot be read or breaks the format.
  explicit safetensors_file(const std::filesystem::path& path);

  // In the order of their bytes, so that reading them all reads the file once from start to end.
  std::span<const stored_tensor> tensors() const noexcept { return tensors_; }

  // Null when the file has no tensor of that name.
  const stored_tensor* find(std::string_view name) const noexcept;

  // Throws usage_error when the file has no tensor of that name.
  const stored_tensor& at(std::string_view name) const;

  const std::map<std::string, std::string>& metadata() const noexcept { return metadata_; }
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
  formats::mapped_file file_;
  std::vector<stored_tensor> tensors_;
  std::unordered_map<std::string_view, const stored_tensor*> by_name_;  // into tensors_
  std::map<std::string, std::string> metadata_;
};

}  // namespace reprise
