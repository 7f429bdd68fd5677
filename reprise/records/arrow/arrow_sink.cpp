#include "reprise/records/arrow/arrow_sink.hpp"

#include <fmt/format.h>

#include <optional>
#include <system_error>
#include <utility>

#include "reprise/base/mutant.hpp"
#include "reprise/formats/printable.hpp"
#include "reprise/formats/refusal.hpp"
#include "reprise/records/arrow/columns.hpp"
#include "reprise/records/arrow/run_recovery.hpp"
#include "reprise/records/arrow/segment_writer.hpp"
#include "reprise/records/arrow/writer_lock.hpp"
#include "reprise/telemetry/log.hpp"

namespace reprise {

namespace {

namespace fs = std::filesystem;

// Nothing but what a writer leaves that was killed before its first manifest.
bool holds_nothing_else(const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator{folder}) {
    const std::string name = entry.path().filename().string();
    if (name != writer_lock_file && name != std::string{manifest_file} + ".partial") return false;
  }
  return true;
}

class run_folder_sink final : public record_sink {
 public:
  run_folder_sink(fs::path folder, arrow_sink_options options)
      : folder_{std::move(folder)}, options_{std::move(options)} {}

  void open(std::string_view run) override {
    make_folder();
    lock_ = records::writer_lock{folder_};
    if (fs::exists(folder_ / manifest_file)) {
      go_on();
    } else if (!holds_nothing_else(folder_)) {
      formats::refuse(folder_.native(), "the folder holds other files",
                      "give a new folder for the run");
    } else {
      manifest_.run = run;
    }
    schema_ = records::arrow_schema(manifest_.run);
    next_segment_ = records::next_segment(manifest_);
    if (!write_manifest()) {
      formats::refuse(folder_.native(), "no file can be written there",
                      "give a folder that takes files");
    }
  }

  void write(std::span<const tap_record> records) override {
    if (segment_ && (segment_->broken() || segment_->so_far().bytes >= options_.segment_bytes)) {
      end_segment();
    }
    if (!segment_) {
      segment_.emplace(folder_, next_segment_, options_.files, schema_);
      ++next_segment_;
      // Should the manifest not be written, the segment is found by its name.
      manifest_.segments.push_back(segment_->so_far());
      write_manifest();
    }
    segment_->write(*records::batch_of(records, schema_));
  }

  void flush() override {
    if (segment_ && !segment_->broken()) segment_->sync();
    note_segment();
    require_manifest();
  }

  void note_lost(std::uint64_t records) override {
    if (!REPRISE_MUTANT(manifest_tells_no_loss)) manifest_.lost = lost_before_ + records;
  }

  void close() override {
    if (segment_) end_segment();
    manifest_.closed = true;
    require_manifest();
    lock_ = {};
  }

 private:
  void make_folder() {
    std::error_code failed;
    fs::create_directories(folder_, failed);
    if (failed || !fs::is_directory(folder_)) {
      formats::refuse(folder_.native(),
                      fmt::format("the folder of the run cannot be made ({})",
                                  failed ? failed.message() : "a file of that name is there"),
                      "give a folder that can be");
    }
  }

  void go_on() {
    if (read_manifest(folder_).closed) {
      formats::refuse(folder_.native(), "a run is there that has ended",
                      "give another folder, or remove this one");
    }
    records::recovered_run found = records::recover_run(folder_);
    manifest_ = std::move(found.manifest);
    lost_before_ = manifest_.lost;
    log_line(
        fmt::format("{}: the run that was cut off there goes on; {} batches of open segments "
                    "were whole, {} bytes behind them were cut",
                    formats::printable(folder_.native()), found.batches, found.cut_bytes));
  }

  void end_segment() {
    // Whatever closing says, this segment is done, and what was written is counted.
    try {
      segment_->finish();
    } catch (const sink_error& failed) {
      log_line(failed.what());
    }
    note_segment();
    segment_.reset();
    write_manifest();
  }

  void note_segment() {
    if (segment_) manifest_.segments.back() = segment_->so_far();
  }

  bool write_manifest() {
    const std::string text = manifest_text(manifest_);
    return options_.files.write_whole(folder_ / manifest_file, std::as_bytes(std::span{text}));
  }

  void require_manifest() {
    if (write_manifest()) return;
    throw sink_error{sink_trouble::records,
                     fmt::format("{}: the manifest cannot be written, free some space or check the "
                                 "folder; the segments are as they were",
                                 formats::printable(folder_.native()))};
  }

  fs::path folder_;
  arrow_sink_options options_;
  records::writer_lock lock_;
  run_manifest manifest_;
  std::shared_ptr<arrow::Schema> schema_;
  std::optional<records::segment_writer> segment_;
  std::uint64_t next_segment_ = 0;
  std::uint64_t lost_before_ = 0;  // by a writer that was cut off
};

}  // namespace

bool has_arrow() noexcept {
  return true;
}

std::unique_ptr<record_sink> arrow_sink(fs::path folder, arrow_sink_options options) {
  return std::make_unique<run_folder_sink>(std::move(folder), std::move(options));
}

}  // namespace reprise
