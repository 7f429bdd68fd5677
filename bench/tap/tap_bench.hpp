// `bench tap`: what it costs to look inside a step while it is replayed, and how fast what is seen
// leaves the device.
//
// Everything runs through a cache and a monitor. What stands beside a figure, its floor, is
// measured in the same process and in the same rounds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/measure/progress.hpp"
#include "bench/tap/drain_rates.hpp"
#include "bench/tap/placement.hpp"
#include "bench/tap/planning.hpp"
#include "bench/tap/producer_rates.hpp"

namespace reprise::bench {

// 0: as much as suits the device, a GPU or another.
struct tap_bench_options {
  int layers = 36;
  std::int64_t layer_mib = 0;                 // weights that a layer reads [32; 1]
  std::vector<std::int64_t> kib{8, 64, 256};  // of the residual
  std::vector<int> buffers{3, 2};             // that residuals take in turns
  int repeats = 0;                            // rounds of placement and producers [100; 5]
  int pairs = 0;                  // of a step with no point on and a bare one [1000; 20]
  std::int64_t drain_mib = 0;     // of one flush [128; 4]
  int drains = 0;                 // flushes [20; 3]
  std::int64_t producer_mib = 0;  // of the large point [64; 1]
  int plans = 1000;
};

struct tap_bench_report {
  tap_bench_options options;  // with nothing left open
  std::vector<placement> placements;
  std::vector<drain_rates> drains;
  std::vector<producer_rates> producers;
  std::vector<planning_figure> planning;
  bool timed_by_events = false;  // else device time is of the host, until the stream was done

  std::vector<const watched_counts*> runs() const;
  // What the run promises of itself: every step was replayed, every publication that was planned
  // arrived, and records, outputs and plans were right. One line; empty when so.
  std::string failure() const;
};

// The device has what add_tap_kernels() adds (layer.hpp). Throws usage_error on bad options before
// anything has run.
tap_bench_report run_tap_bench(device_ref device, const tap_bench_options& options,
                               const progress& tell);

}  // namespace reprise::bench
