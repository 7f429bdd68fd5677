// A training step of a small network, one op for each layer: eager and replayed, alone and with
// gradients of several forwards accumulated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/grad/grad_figure.hpp"
#include "bench/grad/subject.hpp"
#include "bench/measure/progress.hpp"

namespace reprise::bench {

inline constexpr int net_layers = 8;
inline constexpr int accumulated = 3;  // forwards of all layers, and then their backwards

struct net_row {
  grad_figure host;  // of a step's calls, the update of the weights too
  spread step_us;    // until the stream was synchronised
  int forwards = 1;  // of each layer in a step
  op_counts layers;  // of all together; equal: the weights are, after all steps
};

struct net_costs {
  std::vector<net_row> rows;
};

// `native_stream` is null where there is no bare launch; the stream is idle at the end.
net_costs measure_nets(pool& memory, const call_timer& timer, void* native_stream, int steps,
                       const progress& tell);

}  // namespace reprise::bench
