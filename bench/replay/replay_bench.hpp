// `bench replay`: what a replay adds to launching the same graph by hand.
//
// One chain of kernels is run in several ways: eagerly through Reprise, as a graph that CUDA itself
// captured and launches (the bare launch), and as a replay under 1, 8 and 32 facts; each with no
// input and with one block of 4 KiB from host memory. Every way is called once a round, so that
// what disturbs the machine disturbs all of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/measure/progress.hpp"
#include "bench/measure/spread.hpp"
#include "reprise/device/device.hpp"
#include "reprise/replay/cache.hpp"

namespace reprise::bench {

struct replay_bench_options {
  std::vector<std::int64_t> nodes{10, 100, 1000};
  int repeats = 500;  // rounds that are measured, for each number of nodes
};

enum class contest : std::uint8_t { eager, bare, replay };
std::string_view name_of(contest how);

// One way of running one chain.
struct replay_row {
  std::int64_t nodes = 0;
  contest how = contest::eager;
  int facts = 0;  // of a replay
  bool staged = false;
  bool measured = true;  // false: a bare launch where no CUDA device is
  spread host_us;        // of the call alone, with nothing queued before it
  spread device_us;      // see replay_bench_report::timed_by_events
  std::uint64_t calls = 0;
  step_counts counts;  // of an eager run or a replay, as its cache counted
  bool equal = true;   // each output that was compared has the bits of the eager run
};

// What a replay adds to the host time of the bare launch of the same chain; medians of one run.
struct added_time {
  std::int64_t nodes = 0;
  int facts = 0;
  bool staged = false;
  double us = 0;
  // Of a staged replay: over a bare copy of the block and a bare launch, which take CUDA's own time
  // for the copy out.
  double us_over_copy = 0;
};

struct replay_bench_report {
  std::vector<replay_row> rows;
  std::vector<added_time> added;  // empty where there is no bare launch
  bool bare = false;              // a bare launch was measured
  // Device time lies between two CUDA events around the call; else it is host time from the call
  // until the stream was synchronised.
  bool timed_by_events = false;

  // What the run promises of itself: every step ran as planned, and with the same bits. One line;
  // empty when so.
  std::string failure() const;
};

// Throws usage_error on bad options before anything has run.
replay_bench_report run_replay_bench(device_ref device, const replay_bench_options& options,
                                     const progress& tell);

}  // namespace reprise::bench
