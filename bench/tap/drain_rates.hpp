// How fast the drain brings full rings to the host: large records and small ones, by the copy
// engine and by a kernel, into a sink that counts and into none.
//
// Nothing drains meanwhile: the ring is filled by replays, the stream synchronised, and one flush
// is timed. Beside it the same bytes are copied to pinned memory at once, and record by record.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bench/measure/progress.hpp"
#include "bench/tap/rate_figure.hpp"
#include "bench/tap/watched_run.hpp"
#include "reprise/device/memory.hpp"

namespace reprise::bench {

inline constexpr std::size_t small_record_bytes = std::size_t{16} << 10;
inline constexpr std::size_t large_record_bytes = std::size_t{1} << 20;
inline constexpr double small_drain_limit_gb_s = 45;
inline constexpr double large_drain_limit_share = 0.9;  // of one copy to pinned memory

struct drain_rates {
  std::size_t record_bytes = 0;
  std::size_t records = 0;  // of one flush
  std::vector<rate_figure> figures;
  std::vector<watched_counts> runs;

  std::string failure() const;  // as of placement
};

struct drain_options {
  std::size_t record_bytes = 0;
  std::size_t bytes = 0;  // of one flush: a multiple of that
  int repeats = 20;
};

// The stream is idle at the end.
drain_rates measure_drain(pool& memory, stream_ref stream, const drain_options& options,
                          const progress& tell);

}  // namespace reprise::bench
