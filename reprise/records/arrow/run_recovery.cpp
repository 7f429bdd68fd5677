#include "reprise/records/arrow/run_recovery.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <system_error>

#include "reprise/base/mutant.hpp"
#include "reprise/formats/refusal.hpp"
#include "reprise/records/arrow/segment_reader.hpp"

namespace reprise::records {

namespace {

std::uint64_t segment_number(const std::string& file) {
  std::uint64_t number = 0;
  const char* const digits = file.data() + file.find('-') + 1;
  std::from_chars(digits, file.data() + file.size(), number);
  return number;
}

}  // namespace

run_manifest manifest_and_later_segments(const std::filesystem::path& folder) {
  // The manifest first: a segment that begins meanwhile is then seen at least once.
  run_manifest manifest = read_manifest(folder);
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator{folder, failed}) {
    const std::string name = entry.path().filename().string();
    if (is_segment_name(name) &&
        std::ranges::find(manifest.segments, name, &run_segment::file) == manifest.segments.end()) {
      manifest.segments.push_back({.file = name});
    }
  }
  if (failed) formats::refuse(folder.native(), "the folder cannot be listed", "check its rights");
  std::ranges::sort(manifest.segments, {},
                    [](const run_segment& s) { return segment_number(s.file); });
  return manifest;
}

std::uint64_t next_segment(const run_manifest& manifest) {
  std::uint64_t next = 0;
  for (const run_segment& segment : manifest.segments) {
    next = std::max(next, segment_number(segment.file) + 1);
  }
  return next;
}

recovered_run recover_run(const std::filesystem::path& folder) {
  recovered_run run{.manifest = manifest_and_later_segments(folder)};
  for (run_segment& segment : run.manifest.segments) {
    if (segment.closed) continue;
    const std::filesystem::path path = folder / segment.file;
    std::error_code failed;
    const std::uint64_t bytes = std::filesystem::file_size(path, failed);
    if (failed) formats::refuse(path.native(), "the segment is not there", "copy the run again");
    segment = scan_segment(folder, segment.file);
    segment.closed = true;
    run.batches += segment.batches;
    run.cut_bytes += bytes - segment.bytes;
    if (segment.bytes == bytes && segment.batches != 0) continue;
    if (REPRISE_MUTANT(recovery_cuts_nothing)) continue;
    if (segment.batches == 0) {
      std::filesystem::remove(path, failed);
    } else {
      std::filesystem::resize_file(path, segment.bytes, failed);
    }
    if (failed) formats::refuse(path.native(), "the segment cannot be cut", "check its rights");
  }
  std::erase_if(run.manifest.segments, [](const run_segment& s) { return s.batches == 0; });
  return run;
}

}  // namespace reprise::records
