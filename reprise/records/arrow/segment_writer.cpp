#include "reprise/records/arrow/segment_writer.hpp"

#include <arrow/buffer.h>
#include <arrow/ipc/options.h>
#include <arrow/ipc/writer.h>
#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "reprise/base/mutant.hpp"
#include "reprise/formats/printable.hpp"
#include "reprise/records/arrow/columns.hpp"
#include "reprise/records/record_sink.hpp"

namespace reprise::records {

namespace {

// What ends an Arrow IPC stream: a continuation mark and a message of no bytes.
constexpr std::array end_of_stream{std::byte{0xff}, std::byte{0xff}, std::byte{0xff},
                                   std::byte{0xff}, std::byte{0},    std::byte{0},
                                   std::byte{0},    std::byte{0}};

[[noreturn]] void fail(const std::filesystem::path& path, std::string_view what,
                       std::int64_t code) {
  const int error = static_cast<int>(-code);
  const std::string_view remedy = error == ENOSPC || error == EDQUOT
                                      ? "free some space; the run goes on without these records"
                                      : "look at the folder and its disk";
  throw sink_error{sink_trouble::records,
                   fmt::format("{}: {} ({}), {}", formats::printable(path.native()), what,
                               std::generic_category().message(error), remedy)};
}

std::span<const std::byte> bytes_of_buffer(const arrow::Buffer& buffer) {
  return std::as_bytes(std::span{buffer.data(), static_cast<std::size_t>(buffer.size())});
}

}  // namespace

segment_writer::segment_writer(std::filesystem::path folder, std::uint64_t number,
                               const file_layer& files, std::shared_ptr<arrow::Schema> schema)
    : path_{std::move(folder) / segment_name(number)},
      files_{files},
      schema_{std::move(schema)},
      so_far_{.file = segment_name(number)} {
  const auto head = required(arrow::ipc::SerializeSchema(*schema_), "an Arrow schema");
  file_ = files_.create(path_);
  if (file_ < 0) fail(path_, "the segment cannot be made", file_);
  try {
    append(bytes_of_buffer(*head));
  } catch (...) {
    files_.close(std::exchange(file_, -1));
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
    throw;
  }
}

segment_writer::~segment_writer() {
  if (file_ >= 0) files_.close(file_);
}

void segment_writer::write(const arrow::RecordBatch& batch) {
  const auto bytes =
      required(arrow::ipc::SerializeRecordBatch(batch, arrow::ipc::IpcWriteOptions::Defaults()),
               "an Arrow batch");
  append(bytes_of_buffer(*bytes));
  ++so_far_.batches;
  so_far_.records += static_cast<std::uint64_t>(batch.num_rows());
}

void segment_writer::append(std::span<const std::byte> bytes) {
  std::span<const std::byte> rest = bytes;
  while (!rest.empty()) {
    const std::int64_t written = files_.write(file_, rest);
    if (written == -EINTR) continue;
    if (written <= 0) {
      const bool cut = REPRISE_MUTANT(half_a_batch_is_left) || rest.size() == bytes.size() ||
                       files_.truncate(file_, so_far_.bytes) == 0;
      if (!cut) broken_ = true;
      fail(path_, "a batch cannot be written", written == 0 ? -ENOSPC : written);
    }
    rest = rest.subspan(static_cast<std::size_t>(written));
  }
  so_far_.bytes += bytes.size();
}

void segment_writer::sync() {
  const int code = files_.sync(file_);
  if (code < 0) fail(path_, "the segment cannot be flushed", code);
}

void segment_writer::finish() {
  // A stream that ends without these bytes is read as well.
  try {
    if (!broken_) append(end_of_stream);
  } catch (const sink_error&) {
  }
  const int code = files_.close(std::exchange(file_, -1));
  so_far_.closed = true;
  if (code < 0) fail(path_, "the segment cannot be closed", code);
}

}  // namespace reprise::records
