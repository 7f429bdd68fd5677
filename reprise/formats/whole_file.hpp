// Files that are there whole or not at all.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace reprise::formats {

// Writes a file beside it and renames that, so that what an earlier run left is replaced in one
// step; a link to a file stays one. False when it could not be: nothing is left behind, and the
// file is as it was. Not for what is there and is no regular file, which it would replace.
bool write_whole(const std::filesystem::path& file, std::span<const std::byte> bytes);

// The same of files that belong together: none is replaced before all of them are written.
struct file_bytes {
  std::filesystem::path file;
  std::span<const std::byte> bytes;
};
bool write_together(std::span<const file_bytes> files);

}  // namespace reprise::formats
