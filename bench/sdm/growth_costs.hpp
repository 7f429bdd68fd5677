// Whether a token costs the same whatever the number of slots is: one op after another that differ
// in that alone.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "bench/grad/subject.hpp"
#include "bench/sdm/bench_tools.hpp"
#include "bench/sdm/sdm_figure.hpp"
#include "bench/sdm/sdm_shape.hpp"

namespace reprise::bench {

struct growth_row {
  std::int64_t slots = 0;
  spread op;             // forward and backward, replayed
  double passes_us = 0;  // medians of its whole-bank passes
  std::int64_t tokens = 1;

  // Without whole-bank passes.
  double us_per_token() const { return (op.median - passes_us) / static_cast<double>(tokens); }
};

struct growth_costs {
  sdm_growth_shape shape;
  std::vector<growth_row> rows;
  std::vector<op_counts> ops;
  std::vector<sdm_step_counts> steps;
  bool is_judged = false;

  // Of a token's time over that of the first row.
  double percent(const growth_row& row) const;
  // The largest is held to growth_limit_percent. Nothing where nobody judges.
  std::optional<bool> within() const;
};

growth_costs measure_growth(const sdm_tools& with, const sdm_growth_shape& shape);

}  // namespace reprise::bench
