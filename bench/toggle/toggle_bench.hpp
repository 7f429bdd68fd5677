// `bench toggle`: what it costs to switch taps from step to step.
//
// Everything runs through a cache and a monitor; what stands beside a figure, its floor, is
// measured in the same process and in the same rounds.
#pragma once

#include <string>
#include <vector>

#include "bench/toggle/switching.hpp"

namespace reprise::bench {

// 0, or nothing: as much as suits the device, a GPU or another.
struct toggle_bench_options {
  std::vector<int> points{};  // of steps; idle at each, all else at the last [36,256; 4,12]
  int repeats = 0;            // of each changed set [200; 4]
  int pairs = 0;              // of idle, recurring and unchanged steps [1000; 10]
  int schedules = 0;          // random sets ahead of a fresh executable's peer [1000; 20]
};

struct toggle_bench_report {
  toggle_bench_options options;  // with nothing left open
  toggle_figures all;
  bool timed_by_events = false;  // else device time is of the host, until the stream was done

  // What the run promises of itself: every step was replayed, had just the records of its set and
  // the right bits, and took the calls of the driver that are meant. One line; empty when so.
  std::string failure() const;
};

// The device has what add_tap_kernels() adds (bench/tap/layer.hpp). Throws usage_error on bad
// options before anything has run.
toggle_bench_report run_toggle_bench(device_ref device, const toggle_bench_options& options,
                                     const progress& tell);

}  // namespace reprise::bench
