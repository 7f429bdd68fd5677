// What is really in a run directory, beside what its manifest says. For this room's .cpp files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "reprise/records/arrow/run_manifest.hpp"

namespace reprise::records {

// The manifest with what came after it: segments that it does not know yet, in order.
run_manifest manifest_and_later_segments(const std::filesystem::path& folder);

// The number after the last segment.
std::uint64_t next_segment(const run_manifest& manifest);

struct recovered_run {
  run_manifest manifest;        // every segment closed and counted
  std::uint64_t batches = 0;    // whole, in segments that were open
  std::uint64_t cut_bytes = 0;  // behind those
};

// Cuts every segment that was not closed back to its last whole batch, and removes those without
// one. The caller holds the writer's lock and writes the manifest. Throws usage_error where a file
// cannot be read or cut.
recovered_run recover_run(const std::filesystem::path& folder);

}  // namespace reprise::records
