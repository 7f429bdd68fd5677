// `bench sim`: how many operations a second the simulated GPU runs, with and without watching
// memory.
//
// The operations are trivial: swiglu of sixteen floats, eager on four streams that events order now
// and then, and in a graph of twenty nodes with two branches. So what is timed is the simulator.
// Both ways run in turns, seed by seed, each on a device of its own.
#pragma once

#include <cstdint>
#include <string>

#include "bench/measure/progress.hpp"
#include "bench/measure/spread.hpp"

namespace reprise::bench {

struct sim_bench_options {
  std::uint64_t operations = 20'000;  // for each seed and way, at least
  std::uint64_t seeds = 20;
};

struct sim_way {
  spread operations_per_second;  // of the seeds
  std::uint64_t operations = 0;
};

struct sim_bench_report {
  sim_way watched;             // races, poison, undeclared accesses
  sim_way unwatched;           // the schedule alone
  std::uint64_t findings = 0;  // there should be none: the program is correct
  double floor = 20'000;       // operations a second with race finding that it is held to

  // One line; empty when no fault was found where there is none.
  std::string failure() const;
};

// Throws usage_error on bad options before anything has run. One thread.
sim_bench_report run_sim_bench(const sim_bench_options& options, const progress& tell);

}  // namespace reprise::bench
