// What a cache has done and what it holds, for people and for JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "reprise/replay/outcome.hpp"
#include "reprise/replay/recording.hpp"

namespace reprise {

// What happened to all runs so far. Hits are replays; misses are all others.
struct step_counts {
  std::uint64_t captured = 0;
  std::uint64_t replayed = 0;
  std::uint64_t eager = 0;
  std::map<std::string, std::uint64_t> eager_reasons;  // by rule; they add up to `eager`
  std::uint64_t prepared = 0;                          // recordings made ahead of time
  std::uint64_t evicted = 0;   // dropped to make room, stale, or put to sleep
  std::uint64_t missed = 0;    // runs that found no recording of their key
  std::uint64_t refused = 0;   // captures that the budget did not admit
  std::uint64_t thrashed = 0;  // runs that were kept eager because their key thrashes
};

struct cache_bytes {
  std::size_t recordings = 0;  // charged to the budget, those retired included
  std::size_t eager = 0;       // of eager runs, outside the budget
  std::size_t verification = 0;
};

struct recording_row {
  std::string step;
  std::string key;  // in words
  std::size_t nodes = 0;
  std::size_t segments = 0;
  std::uint64_t replays = 0;
  recording_bytes bytes;
  recording_phases phases;
  std::vector<break_cost> breaks;
  std::vector<staged_after_all> staged_inputs;
};

// A key that was missed, and what it differed in from the recording of its step that was nearest.
struct missed_key {
  std::string step;
  std::uint64_t uses = 0;
  std::vector<breach> differs;  // empty: there was no other recording of its step
};

struct cache_report {
  step_counts counts;
  cache_bytes bytes;
  std::size_t budget = 0;  // its limit
  std::size_t most_held = 0;
  std::vector<recording_row> recordings;
  std::vector<missed_key> missed;
};

// A table; then a line each for misses, budget refusals and thrash, where there were any.
std::string text_of(const cache_report& report);
std::vector<std::string> summary_of(const cache_report& report);

}  // namespace reprise
