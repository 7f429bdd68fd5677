// Hits and misses of a cache that holds many recordings, each beside what it is held against.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/measure/call_figure.hpp"
#include "bench/measure/progress.hpp"
#include "reprise/device/memory.hpp"

namespace reprise::bench {

inline constexpr int cache_facts = 32;
// With the shapes of two inputs 12 parts; where nothing is staged the second shape is one more.
inline constexpr int cache_key_parts = 10;
inline constexpr int cache_key_parts_unstaged = 11;
inline constexpr double hit_limit_us = 1.5;   // over the bare launch
inline constexpr double miss_limit_us = 3.0;  // over the eager run

// How the calls of one way were answered.
struct way_counts {
  std::string what;
  std::uint64_t calls = 0;
  std::uint64_t replayed = 0;
  std::uint64_t eager = 0;  // for the reason that was planned
  bool replays = false;     // what was planned
  bool equal = true;        // each output that was compared has the bits of the eager run
};

struct key_costs {
  std::vector<call_figure> figures;
  std::vector<way_counts> counts;
  call_figure prepare;  // of one recording

  // One line; empty when every call was answered as planned, with the same bits.
  std::string failure() const;
};

struct key_costs_options {
  std::int64_t nodes = 10;
  int recordings = 200;
  int repeats = 500;
};

// `native_stream` is null where there is no bare launch; the stream is idle at the end.
key_costs measure_keys(pool& memory, stream_ref stream, void* native_stream,
                       const key_costs_options& options, const progress& tell);

}  // namespace reprise::bench
