// The calls by which a run directory is written: the system's, or a test's with faults in them.
//
// Each gives what the call of that name gives, and minus errno where it fails. From the sink's
// thread alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>

namespace reprise {

struct file_layer {
  // A new file, for writing; fails where there is one.
  std::function<int(const std::filesystem::path&)> create;
  // How many bytes were written, which may be fewer than were given.
  std::function<std::int64_t(int file, std::span<const std::byte>)> write;
  std::function<int(int file, std::uint64_t bytes)> truncate;
  std::function<int(int file)> sync;
  std::function<int(int file)> close;
  // The manifest: whole or not at all (formats/whole_file.hpp). False: not at all.
  std::function<bool(const std::filesystem::path&, std::span<const std::byte>)> write_whole;
};

file_layer system_files();

}  // namespace reprise
