// explore: runs a closure on the simulated GPU under one seed after the other, and says which seeds
// found a fault in it. For the capture code of users as for our own.
//
//   const exploration seen = explore(200, [](device_ref dev) { … });
//   EXPECT_TRUE(seen.failures.empty()) << seen;
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "reprise/device/device.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/platform/platform.hpp"

namespace reprise {

struct explore_options {
  std::uint64_t first_seed = 1;
  kernel_registry kernels = builtin_kernels();
  std::vector<std::string> landmarks;  // that one of the seeds must reach
  bool watches_memory = true;
  std::size_t most_failures = 1;  // it stops at so many
  // Seeds tried for a shorter trace once one has failed.
  int shortening_seeds = 20;
  std::function<void(std::uint64_t done)> progress = {};
};

struct failed_seed {
  std::uint64_t seed = 0;
  std::string what;   // one line: the finding, or what was thrown
  std::string trace;  // what led there, one event a line
};

struct exploration {
  std::uint64_t seeds = 0;  // that were run
  std::uint64_t operations = 0;
  std::vector<failed_seed> failures;
  std::vector<std::string> landmarks_missed;
};

// A seed fails when the scenario throws or the device has a finding, leaks at its close included.
exploration explore(std::uint64_t seeds, const std::function<void(device_ref)>& scenario,
                    const explore_options& options = {});

// Failures with their traces, and `repeat` (a command, with {} for the seed) last.
std::string text_of(const exploration& seen, std::string_view repeat = {});

std::ostream& operator<<(std::ostream& to, const exploration& seen);

}  // namespace reprise
