// `bench cache`: what a cache adds to the work that it saves, and what it costs to fill and to
// empty it.
//
// A hit is held against the bare launch of the same graph, a miss against the plain eager run; all
// of them are called once a round, so that what disturbs the machine disturbs all. The key has 12
// parts, the recording 32 facts, and the cache holds `recordings` others of the same step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/cache/capture_costs.hpp"
#include "bench/cache/cycles.hpp"
#include "bench/cache/key_costs.hpp"
#include "bench/measure/call_figure.hpp"
#include "bench/measure/progress.hpp"
#include "reprise/device/device.hpp"

namespace reprise::bench {

struct cache_bench_options {
  std::vector<std::int64_t> nodes{10, 100, 1000};  // of captures; hits and misses are of the first
  int recordings = 200;                            // beside the one that is hit
  int repeats = 500;                               // rounds of hits and misses
  int captures = 20;                               // of each number of nodes
  std::uint64_t cycles = 3000;
};

struct cache_bench_report {
  key_costs keys;
  capture_costs captures;
  cycle_report cycles;
  bool bare = false;  // a bare launch was measured

  // What the run promises of itself: it went as planned, with the same bits, and memory stayed
  // where it was. One line; empty when so.
  std::string failure() const;
};

// Throws usage_error on bad options before anything has run.
cache_bench_report run_cache_bench(device_ref device, const cache_bench_options& options,
                                   const progress& tell);

}  // namespace reprise::bench
