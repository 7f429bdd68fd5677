// The simulated GPU, twice.
//
// `cpu`: work runs at once, in issue order, on the calling thread. `sim:seed=N`: the adversary;
// calls return before their work ran, a seed says what runs next, and everything that a real GPU
// would let go wrong in silence is a finding (docs/simulator.md).
#pragma once

#include <cstdint>
#include <memory>

#include "reprise/device/api.hpp"
#include "reprise/sim/journal.hpp"

namespace reprise::sim {

// What `cpu` says of itself: this processor, the rungs that it runs, and its threads.
device_traits cpu_traits(int threads = 0);

// `threads` for CPU bodies, the calling one counted; 0 takes as many as the process may use.
std::unique_ptr<device_api> open_cpu(int threads = 0);

// The same engine under other traits: for tests that need a device with bodies or an arch chain
// that this machine has not. Its bodies are given a cpu_call, whatever kind they are of.
std::unique_ptr<device_api> open_in_order(device_traits traits);

struct adversary_options {
  std::uint64_t seed = 1;
  bool watches_memory = true;  // races, poison, undeclared accesses; off: the schedule alone
  bool takes_fault_points = true;
  bool stops_at_findings = true;       // the next call that can fail throws the first
  std::shared_ptr<journal> into = {};  // null: one of its own
};

// The calling thread is the first that it knows; others come through host_thread.
std::unique_ptr<device_api> open_adversary(const adversary_options& options);

}  // namespace reprise::sim
