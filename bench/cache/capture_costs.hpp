// What it costs to fill a cache and to empty it: captures by phase, recording in another's place,
// and dropping what is stale.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/measure/call_figure.hpp"
#include "bench/measure/progress.hpp"
#include "reprise/device/memory.hpp"

namespace reprise::bench {

// Host microseconds a node, of recording a chain of so many.
struct capture_row {
  std::int64_t nodes = 0;
  spread warm_up;
  spread in_capture;
  spread instantiation;
  spread first_replay;
  spread total;  // the whole call
  spread floor;  // the same chain captured, instantiated and uploaded by CUDA calls alone
};

struct capture_costs {
  std::vector<capture_row> rows;
  std::vector<call_figure> figures;
  spread bare_us;  // of capturing the first chain by CUDA calls alone
};

struct capture_costs_options {
  std::vector<std::int64_t> nodes{10, 100, 1000};
  int captures = 20;
  int recordings = 200;  // that are dropped at once
};

capture_costs measure_captures(pool& memory, stream_ref stream, void* native_stream,
                               const capture_costs_options& options, const progress& tell);

}  // namespace reprise::bench
