// A run directory: records in Arrow IPC stream segments, with a manifest. pyarrow, DuckDB and
// `reprise records` read it while the run goes on, and after a crash up to the last whole batch.
//
// Without Arrow C++ (the build finds it in the system or in the pyarrow wheel) the same call
// throws, and says how to get it. docs/records.md is for readers of the directory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "reprise/records/arrow/file_layer.hpp"
#include "reprise/records/record_sink.hpp"

namespace reprise {

struct arrow_sink_options {
  std::uint64_t segment_bytes = std::uint64_t{256} << 20;  // a segment that is larger is the last's
  file_layer files = system_files();
};

// Whether this build has Arrow.
bool has_arrow() noexcept;

// Opening it makes `folder`, or goes on with a run that was cut off there: that is brought to its
// last whole batch first, and a log line says how many there were. Throws usage_error from open()
// where somebody writes there, where a run is there that was ended, where the folder holds other
// files, or cannot be written; and here where the build has no Arrow.
//
// write() throws sink_error where the disk is full: nothing is half written then, and what comes
// later is written again once there is room. flush() puts everything on the disk (fdatasync).
std::unique_ptr<record_sink> arrow_sink(std::filesystem::path folder,
                                        arrow_sink_options options = {});

}  // namespace reprise
