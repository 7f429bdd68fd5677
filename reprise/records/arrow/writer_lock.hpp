// Who writes into a run directory: a lock that goes with its process, however that ends.
//
// A lock of the file writer.lock, so a file that is left behind means nothing; asking whether it is
// held takes nothing and disturbs nobody. For this room's .cpp files.
#pragma once

#include <filesystem>
#include <utility>

namespace reprise::records {

class writer_lock {
 public:
  writer_lock() = default;
  // Throws usage_error where another process, or another sink of this one, writes there; and where
  // the folder takes no files.
  explicit writer_lock(const std::filesystem::path& folder);
  ~writer_lock();
  writer_lock(writer_lock&& other) noexcept : file_{std::exchange(other.file_, -1)} {}
  writer_lock& operator=(writer_lock&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }

 private:
  int file_ = -1;
};

// Whether somebody writes there now.
bool is_being_written(const std::filesystem::path& folder);

}  // namespace reprise::records
