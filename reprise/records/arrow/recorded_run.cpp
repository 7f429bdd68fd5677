#include "reprise/records/arrow/recorded_run.hpp"

#include <fmt/format.h>

#include <numeric>
#include <system_error>

#include "reprise/formats/refusal.hpp"
#include "reprise/records/arrow/columns.hpp"
#include "reprise/records/arrow/run_recovery.hpp"
#include "reprise/records/arrow/segment_reader.hpp"
#include "reprise/records/arrow/writer_lock.hpp"

namespace reprise {

recorded_run::recorded_run(const std::filesystem::path& folder) : folder_{folder} {
  // In this order: a writer that ends meanwhile has closed the manifest that is read after it.
  const bool written = records::is_being_written(folder);
  manifest_ = records::manifest_and_later_segments(folder);
  state_ = manifest_.closed ? run_state::closed
           : written        ? run_state::being_written
                            : run_state::cut_off;
  for (run_segment& segment : manifest_.segments) {
    if (segment.closed) continue;
    segment = records::scan_segment(folder, segment.file);
    std::error_code ignored;
    const std::uint64_t bytes = std::filesystem::file_size(folder / segment.file, ignored);
    // Of a run that goes on, the rest is a batch on its way.
    if (state_ == run_state::cut_off && bytes > segment.bytes) cut_bytes_ += bytes - segment.bytes;
  }
}

std::uint64_t recorded_run::batches() const noexcept {
  return std::accumulate(segments().begin(), segments().end(), std::uint64_t{0},
                         [](std::uint64_t sum, const run_segment& s) { return sum + s.batches; });
}

std::uint64_t recorded_run::records() const noexcept {
  return std::accumulate(segments().begin(), segments().end(), std::uint64_t{0},
                         [](std::uint64_t sum, const run_segment& s) { return sum + s.records; });
}

void recorded_run::read(const record_filter& filter,
                        const std::function<void(const tap_record&)>& call) const {
  for (const run_segment& segment : manifest_.segments) {
    const std::filesystem::path path = folder_ / segment.file;
    records::segment_reader reader{path};
    for (std::uint64_t batch = 0; batch < segment.batches; ++batch) {
      const auto rows = reader.next();
      if (rows == nullptr) {
        formats::refuse(path.native(),
                        fmt::format("it ends after {} of {} batches", batch, segment.batches),
                        formats::copy_again);
      }
      for (const tap_record& record : records::records_in(*rows, path.native())) {
        if (filter.takes(record)) call(record);
      }
    }
  }
}

}  // namespace reprise
