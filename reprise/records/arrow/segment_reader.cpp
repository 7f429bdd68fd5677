#include "reprise/records/arrow/segment_reader.hpp"

#include <arrow/ipc/dictionary.h>
#include <arrow/ipc/message.h>
#include <arrow/ipc/reader.h>

#include "reprise/formats/refusal.hpp"
#include "reprise/records/arrow/columns.hpp"

namespace reprise::records {

namespace {

// The next whole message; null at the end, whatever ended it.
std::unique_ptr<arrow::ipc::Message> whole_message(arrow::io::InputStream& from) {
  auto read = arrow::ipc::ReadMessage(&from);
  return read.ok() ? std::move(read).ValueUnsafe() : nullptr;
}

}  // namespace

segment_reader::segment_reader(const std::filesystem::path& file) : path_{file} {
  auto opened = arrow::io::ReadableFile::Open(file.native());
  if (!opened.ok()) {
    formats::refuse(file.native(), "the segment cannot be read", formats::copy_again);
  }
  file_ = std::move(opened).ValueUnsafe();
  file_bytes_ = static_cast<std::uint64_t>(required(file_->GetSize(), file.native()));
  const auto message = whole_message(*file_);
  if (message == nullptr) return;
  arrow::ipc::DictionaryMemo none;
  auto schema = arrow::ipc::ReadSchema(*message, &none);
  if (!schema.ok()) {
    formats::refuse(file.native(), "it begins with no Arrow schema", formats::copy_again);
  }
  schema_ = std::move(schema).ValueUnsafe();
  if (const std::string wrong = schema_fault(*schema_); !wrong.empty()) {
    formats::refuse(file.native(), wrong, "use the version of reprise that wrote it");
  }
  whole_bytes_ = static_cast<std::uint64_t>(required(file_->Tell(), file.native()));
}

std::shared_ptr<arrow::RecordBatch> segment_reader::next() {
  if (schema_ == nullptr) return nullptr;
  const auto message = whole_message(*file_);
  if (message == nullptr) {
    constexpr std::uint64_t end_bytes = 8;
    const auto at = static_cast<std::uint64_t>(required(file_->Tell(), path_.native()));
    const bool ended = at == whole_bytes_ + end_bytes && at == file_bytes_;
    if (ended) whole_bytes_ = at;
    return nullptr;
  }
  arrow::ipc::DictionaryMemo none;
  auto batch =
      arrow::ipc::ReadRecordBatch(*message, schema_, &none, arrow::ipc::IpcReadOptions::Defaults());
  if (!batch.ok()) {
    formats::refuse(path_.native(), "a batch of it is damaged", formats::copy_again);
  }
  whole_bytes_ = static_cast<std::uint64_t>(required(file_->Tell(), path_.native()));
  return std::move(batch).ValueUnsafe();
}

run_segment scan_segment(const std::filesystem::path& folder, const std::string& file) {
  segment_reader reader{folder / file};
  run_segment found{.file = file};
  while (const auto batch = reader.next()) {
    ++found.batches;
    found.records += static_cast<std::uint64_t>(batch->num_rows());
  }
  found.bytes = reader.whole_bytes();
  return found;
}

}  // namespace reprise::records
