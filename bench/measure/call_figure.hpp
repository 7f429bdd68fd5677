// A figure with what it is held against: the time of something that has to be done anyway.
#pragma once

#include <optional>
#include <string>

#include "bench/measure/spread.hpp"

namespace reprise::bench {

// Host microseconds of one call.
struct call_figure {
  std::string what;
  std::string floor;  // what the floor is a time of
  spread us;
  spread floor_us;                 // of no measurement where this device has no floor
  std::optional<double> limit_us;  // for what is added to the floor
  bool is_judged = true;           // false: the limit is for another kind of device
  // The median of differences between neighbours in time, where both were measured in pairs.
  std::optional<double> paired_us = {};

  std::optional<double> adds_us() const {
    if (paired_us) return paired_us;
    return us.count == 0 || floor_us.count == 0 ? std::nullopt
                                                : std::optional{us.median - floor_us.median};
  }
  // Nothing where there is no limit, or no floor, or nobody judges.
  std::optional<bool> within() const {
    const std::optional<double> adds = adds_us();
    return adds && limit_us && is_judged ? std::optional{*adds <= *limit_us} : std::nullopt;
  }
};

}  // namespace reprise::bench
