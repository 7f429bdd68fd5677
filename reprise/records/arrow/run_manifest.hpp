// manifest.json of a run directory: what the run is called and which segments it has.
//
//   {"reprise_records": 1, "run": "run1", "closed": false, "lost": 0,
//    "segments": [{"file": "segment-000000.arrows", "closed": true,
//                  "batches": 12, "records": 49152, "bytes": 6400128}]}
//
// Written whole each time, by rename: before the first segment, when one begins or ends, at each
// flush and at the end. So it may be behind the segment that is open, and never ahead of it.
// Stateless, safe from any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/records/schema.hpp"

namespace reprise {

inline constexpr std::string_view manifest_file = "manifest.json";
inline constexpr std::string_view writer_lock_file = "writer.lock";

struct run_segment {
  std::string file;  // its name, in the run directory
  bool closed = false;
  std::uint64_t batches = 0;
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;  // of whole batches and what stands before them
};

struct run_manifest {
  std::uint32_t schema = record_schema_version;
  std::string run{};
  bool closed = false;
  std::uint64_t lost = 0;  // records that were meant for it and could not be written
  std::vector<run_segment> segments{};
};

std::string manifest_text(const run_manifest& manifest);

// Throws usage_error, one line that names `file`, for what is no manifest and for another schema.
run_manifest parse_manifest(std::string_view text, const std::filesystem::path& file);

// Of a run directory. Throws as above, and where there is none.
run_manifest read_manifest(const std::filesystem::path& folder);

// "segment-000007.arrows"
std::string segment_name(std::uint64_t number);
// Whether a file of this name is a segment.
bool is_segment_name(std::string_view name);

}  // namespace reprise
