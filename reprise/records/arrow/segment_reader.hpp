// One segment, batch by batch, as far as it is whole: of a run that was ended, that goes on, or
// that was killed. For this room's .cpp files.
//
// A segment is an Arrow IPC stream: messages of a length, metadata and a body each; the first is
// the schema, each other one a batch, and eight bytes end it. A message that is cut short ends what
// can be read. One batch is in memory at a time.
#pragma once

#include <arrow/io/file.h>
#include <arrow/record_batch.h>

#include <cstdint>
#include <filesystem>
#include <memory>

#include "reprise/records/arrow/run_manifest.hpp"

namespace reprise::records {

class segment_reader {
 public:
  // Throws usage_error where the file cannot be read, or has another schema.
  explicit segment_reader(const std::filesystem::path& file);

  // Null after the last whole batch.
  std::shared_ptr<arrow::RecordBatch> next();

  // So far: the end of the last whole message; 0 where even the schema is cut short.
  std::uint64_t whole_bytes() const noexcept { return whole_bytes_; }
  std::uint64_t file_bytes() const noexcept { return file_bytes_; }

 private:
  std::filesystem::path path_;
  std::shared_ptr<arrow::io::ReadableFile> file_;
  std::shared_ptr<arrow::Schema> schema_;  // null: cut short
  std::uint64_t whole_bytes_ = 0;
  std::uint64_t file_bytes_ = 0;
};

// What the file holds: its whole batches, their records, and the bytes up to their end, with the
// eight at the end of the stream where they are there.
run_segment scan_segment(const std::filesystem::path& folder, const std::string& file);

}  // namespace reprise::records
