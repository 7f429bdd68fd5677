// What a producer takes: the difference between a step with more points in its line and the same
// step with one, so that all they share (the launch, the words of the plan) is in neither. A copy
// within the device is measured in the same way, as nodes of a graph in the place of the points.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bench/measure/call_figure.hpp"
#include "bench/measure/progress.hpp"
#include "bench/tap/rate_figure.hpp"
#include "bench/tap/watched_run.hpp"
#include "reprise/device/memory.hpp"

namespace reprise::bench {

inline constexpr std::size_t small_producer_bytes = std::size_t{64} << 10;
inline constexpr double large_producer_limit_share = 0.8;  // of a copy of as many bytes
inline constexpr double small_producer_limit_us = 3.0;

struct producer_rates {
  std::size_t bytes = 0;  // of a point's tensor
  int more_points = 0;    // over which the difference is shared out
  rate_figure node;       // bytes read plus written
  call_figure first;      // a step with one point, beside the step with none
  std::vector<watched_counts> runs;

  std::string failure() const;  // as of placement
};

struct producer_options {
  std::size_t bytes = 0;
  int more_points = 1;
  int repeats = 100;
  std::size_t lead_bytes = 0;  // of a copy ahead of each step, which hides its host part
};

// The stream is idle at the end.
producer_rates measure_producer(pool& memory, stream_ref stream, void* native_stream,
                                const producer_options& options, const progress& tell);

}  // namespace reprise::bench
