// What the checks cost a run that is not simulated: `bench decode` on `cpu` with this command and
// with one that was built without them (REPRISE_CHECKS=OFF), in turns.
//
// Two programs, because what a build leaves out cannot be switched off in it.
#pragma once

#include <cstdint>
#include <filesystem>

#include "bench/measure/progress.hpp"
#include "bench/measure/spread.hpp"

namespace reprise::bench {

struct checks_cost_options {
  std::filesystem::path checked;    // the command `reprise` of this build
  std::filesystem::path unchecked;  // of the other
  std::uint64_t rounds = 9;
  std::int64_t tokens = 64;
  double limit_per_cent = 5;
};

struct checks_cost {
  spread checked_us;  // of a replayed decode step at batch 1, the medians of the rounds
  spread unchecked_us;
  double per_cent = 0;  // of the medians
};

// Throws usage_error where one of them cannot be run.
checks_cost measure_checks(const checks_cost_options& options, const progress& tell);

}  // namespace reprise::bench
