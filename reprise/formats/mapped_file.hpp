// A whole file, read-only in memory without reading it: pages come in when they are touched.
//
// Move-only; a moved or swapped mapping stays at its address, so spans into it stay good until the
// owner dies. The bytes may be read from any thread. The file must keep its length while it is
// mapped: touching a page that was cut off kills the process (SIGBUS), as with any mapping.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <utility>

namespace reprise::formats {

class mapped_file {
 public:
  // Throws usage_error, one line, when `path` is not a regular file that can be read.
  explicit mapped_file(const std::filesystem::path& path);
  ~mapped_file();

  mapped_file(mapped_file&& other) noexcept : bytes_{std::exchange(other.bytes_, {})} {}
  mapped_file& operator=(mapped_file&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  // Empty for an empty file, and after a move.
  std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  std::span<const std::byte> bytes_;  // what munmap is owed; empty when nothing is
};

}  // namespace reprise::formats
