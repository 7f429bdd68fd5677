// One segment while it is written: each batch is there whole or not at all, whatever fails. For
// this room's .cpp files; segment_reader.hpp has the layout.
//
// A batch is laid out in memory and written in one go. Where that fails half way, the file is cut
// back to where it was before the error is told, so that the next batch, or a reader, finds
// nothing half written.
#pragma once

#include <arrow/record_batch.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "reprise/records/arrow/file_layer.hpp"
#include "reprise/records/arrow/run_manifest.hpp"

namespace reprise::records {

class segment_writer {
 public:
  // Makes the file. Throws sink_error where it cannot; then there is none.
  segment_writer(std::filesystem::path folder, std::uint64_t number, const file_layer& files,
                 std::shared_ptr<arrow::Schema> schema);
  // Ends it where it is; tells nobody.
  ~segment_writer();
  segment_writer(const segment_writer&) = delete;
  segment_writer& operator=(const segment_writer&) = delete;

  // Throws sink_error where it cannot be written.
  void write(const arrow::RecordBatch& batch);
  void sync();
  // Writes the end of the stream, where there is room for it, and closes the file.
  void finish();

  // Not usable any more: what was half written could not be cut off.
  bool broken() const noexcept { return broken_; }
  const run_segment& so_far() const noexcept { return so_far_; }

 private:
  void append(std::span<const std::byte> bytes);

  std::filesystem::path path_;
  const file_layer& files_;
  std::shared_ptr<arrow::Schema> schema_;
  int file_ = -1;
  bool broken_ = false;
  run_segment so_far_;
};

}  // namespace reprise::records
