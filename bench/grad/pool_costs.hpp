// What the number of frames in one pool does to a call: nothing, as pools are made. A replay voids
// the frames that were captured after it by one note, however many there are.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "bench/grad/grad_figure.hpp"
#include "bench/grad/subject.hpp"
#include "bench/measure/progress.hpp"

namespace reprise::bench {

struct pool_row {
  int frames = 0;
  // Of the frame that was captured first: again and again, and behind a forward of every frame.
  grad_figure forward;
  grad_figure forward_behind_all;
  // Of the frame that was captured last: the first look-up after all of them were voided, which
  // replays its forward.
  grad_figure voided_backward;
  op_counts first;
  op_counts last;
};

struct pool_costs {
  std::vector<pool_row> rows;

  // Whether eight in ten forward replays take the same time at the fewest and at the most frames:
  // their ranges from p10 to p90 meet.
  bool is_same_within_spread() const;
};

struct pool_costs_options {
  std::vector<int> frames{10, 1000};  // of each pool, at least 2
  int rounds = 500;
};

// Each pool is of a stream of its own. `counts` are those of the device.
pool_costs measure_pools(pool& memory, device_ref device, const call_counts& counts,
                         const pool_costs_options& options, const progress& tell);

}  // namespace reprise::bench
