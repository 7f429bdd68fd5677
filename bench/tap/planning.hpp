// What the plan of a step costs the host: made, placed and written, as before every watched replay.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/measure/spread.hpp"

namespace reprise::bench {

inline constexpr std::size_t planned_points = 438;
inline constexpr std::size_t planned_requests = 32;
inline constexpr double planning_limit_us = 20;

// One row mode, for all points. Of any machine: no device takes part.
struct planning_figure {
  std::string what;
  spread us;
  spread floor_us;  // as many words, filled
  std::size_t words = 0;
  std::uint64_t plans = 0;
  std::uint64_t right = 0;  // of them

  bool within() const { return us.median <= planning_limit_us; }
  // One line; empty when every plan was what it had to be.
  std::string failure() const;
};

// The last row of each request, all rows, and those that requests have: 512 rows, of which 32
// requests have 8 each, a row of nobody's between every two.
std::vector<planning_figure> measure_planning(int repeats);

}  // namespace reprise::bench
