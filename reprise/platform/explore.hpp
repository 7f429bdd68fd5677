// explore: runs a closure on the simulated GPU under one seed after the other, and says which seeds
// found a fault in it. For the capture code of users as for our own; docs/simulator.md shows how.
//
//   const exploration seen = explore(200, [](device_ref dev) { … });
//   EXPECT_TRUE(seen.failures.empty()) << seen;
//
// The closure makes everything that it uses, and destroys it: each seed has a device of its own,
// and what is left when it closes is a leak. One exploration at a time per process, since errors
// that destructors report and log lines are collected meanwhile.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/device/device.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/platform/platform.hpp"

namespace reprise {

struct explore_options {
  std::uint64_t first_seed = 1;
  kernel_registry kernels = builtin_kernels();
  std::vector<std::string> landmarks = {};  // that one of the seeds must reach
  bool watches_memory = true;
  std::size_t most_failures = 1;  // it stops at so many
  // Seeds tried for a shorter trace once one has failed.
  int shortening_seeds = 20;
  std::function<void(std::uint64_t done)> progress = {};
};

struct failed_seed {
  std::uint64_t seed = 0;
  // Of the first finding ("race"); "thrown" and "reported" where the device found nothing and the
  // closure threw, or a destructor reported an error.
  std::string kind;
  std::string what;   // one line: the finding, or what was thrown
  std::string trace;  // what led there, one event a line
};

// One seed: what failed, if anything, and all that the run did.
struct seed_run {
  std::optional<failed_seed> failure;
  std::vector<std::string> trace;
  std::vector<std::string> landmarks;  // that were reached, in alphabetical order
  std::uint64_t operations = 0;        // works that ran
};

struct exploration {
  std::uint64_t seeds = 0;  // that were run, those for a shorter trace not counted
  std::uint64_t operations = 0;
  std::vector<failed_seed> failures;
  std::vector<std::string> landmarks_missed;
};

// A seed fails when the scenario throws, when the device has a finding, leaks at its close
// included, or when an error is reported. The same seed gives the same run.
exploration explore(std::uint64_t seeds, const std::function<void(device_ref)>& scenario,
                    const explore_options& options = {});

seed_run explore_seed(std::uint64_t seed, const std::function<void(device_ref)>& scenario,
                      const explore_options& options = {});

// Failures with the ends of their traces, and `repeat` (a command, with {} for the seed) last.
std::string text_of(const exploration& seen, std::string_view repeat = {});

std::ostream& operator<<(std::ostream& to, const exploration& seen);

}  // namespace reprise
