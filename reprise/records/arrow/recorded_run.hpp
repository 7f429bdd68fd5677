// A run directory, for reading: one that has ended, one that is being written, one that was cut
// off.
//
// Reading takes no lock and disturbs no writer. What is seen is every batch that was whole when its
// segment was read; each record once. One batch is in memory at a time. Safe from any thread, each
// call for itself. In a build without Arrow the constructor throws, and says how to get it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

#include "reprise/records/arrow/run_manifest.hpp"
#include "reprise/records/record_filter.hpp"
#include "reprise/records/tap_record.hpp"

namespace reprise {

enum class run_state {
  closed,
  being_written,
  cut_off,  // its writer is gone and has not closed it
};

constexpr std::string_view name_of(run_state state) {
  switch (state) {
    case run_state::closed: return "closed";
    case run_state::being_written: return "being written";
    case run_state::cut_off: return "cut off";
  }
  return "?";
}

class recorded_run {
 public:
  // Counts what is whole in the segments that are open, for which it reads them. Throws
  // usage_error, one line, where it is no run directory, of another schema, or lacks a file.
  explicit recorded_run(const std::filesystem::path& folder);

  const std::string& name() const noexcept { return manifest_.run; }
  run_state state() const noexcept { return state_; }
  const std::vector<run_segment>& segments() const noexcept { return manifest_.segments; }
  std::uint64_t batches() const noexcept;                          // whole
  std::uint64_t records() const noexcept;                          // in those
  std::uint64_t lost() const noexcept { return manifest_.lost; }   // never written, as far as known
  std::uint64_t cut_bytes() const noexcept { return cut_bytes_; }  // behind those: half a batch

  // Calls for each record that the filter takes, in the order in which they were written, segment
  // by segment; the record is good during the call. Only what was there when it was opened. Throws
  // usage_error where a segment is damaged.
  void read(const record_filter& filter, const std::function<void(const tap_record&)>& call) const;

 private:
  std::filesystem::path folder_;
  run_manifest manifest_;
  run_state state_ = run_state::closed;
  std::uint64_t cut_bytes_ = 0;
};

}  // namespace reprise
