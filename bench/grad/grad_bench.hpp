// `bench grad`: what differentiable ops cost that are replayed.
//
// Everything is called in rounds, so that what disturbs the machine disturbs all, and stands beside
// what has to be done anyway: mostly the bare launch of a recording of as many nodes. The calls of
// the seam are counted, and a run whose counts are not those that were planned has failed.
#pragma once

#include <string>
#include <vector>

#include "bench/grad/call_costs.hpp"
#include "bench/grad/net_costs.hpp"
#include "bench/grad/op_lives.hpp"
#include "bench/grad/pool_costs.hpp"
#include "bench/measure/progress.hpp"
#include "reprise/device/counting.hpp"
#include "reprise/device/device.hpp"

namespace reprise::bench {

struct grad_bench_options {
  int rounds = 500;                   // of calls
  std::vector<int> frames{10, 1000};  // of each pool
  int ops = 1000;                     // that are made and destroyed
  int steps = 100;                    // of training
};

struct grad_bench_report {
  call_costs calls;
  pool_costs pools;
  op_lives_report lives;
  net_costs nets;
  bool bare = false;  // a bare launch was measured

  std::vector<const grad_figure*> figures() const;
  std::vector<const op_counts*> ops() const;
  // What the run promises of itself: all calls were answered, and asked of the device, as planned,
  // with the bits of eager runs, and nothing of an op is left. One line; empty when so.
  std::string failure() const;
};

// `counts`: of the device, which was opened with them, and on which nobody else is at work. Throws
// usage_error on bad options before anything has run.
grad_bench_report run_grad_bench(device_ref device, const call_counts& counts,
                                 const grad_bench_options& options, const progress& tell);

}  // namespace reprise::bench
