// One figure of `bench sdm`: a time beside what its bytes alone take, and beside its limit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "bench/measure/spread.hpp"
#include "reprise/replay/cache_report.hpp"

namespace reprise::bench {

struct sdm_figure {
  std::string what;
  double us = 0;    // the median; or a difference of medians
  spread measured;  // of no measurement where `us` is a difference
  std::int64_t tokens = 1;
  std::optional<std::int64_t> floor_bytes;
  double bytes_per_us = 0;  // of copies
  std::optional<double> limit_us;
  bool is_judged = false;  // limits are for a GPU

  double us_per_token() const { return us / static_cast<double>(tokens); }
  std::optional<double> floor_us() const;
  // How many times its floor it takes.
  std::optional<double> over_floor() const;
  // Nothing where there is no limit, or nobody judges.
  std::optional<bool> within() const;
};

// How a step's runs were answered.
struct sdm_step_counts {
  std::string what;
  std::uint64_t runs = 0;  // that were to replay; the first records
  std::uint64_t eager_runs = 0;
  step_counts replays;
  step_counts eager;
  bool equal = true;  // what it wrote has the bits of eager runs

  // One line; empty when all is as planned.
  std::string failure() const;
};

}  // namespace reprise::bench
