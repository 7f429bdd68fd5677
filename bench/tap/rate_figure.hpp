// How fast bytes are moved, beside how fast a plain copy moves as many.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "bench/measure/spread.hpp"

namespace reprise::bench {

struct rate_figure {
  std::string what;
  std::uint64_t bytes = 0;  // that are moved in `us`, and in `floor_us`
  spread us;
  std::string floor;  // what moves them there
  spread floor_us;

  std::optional<double> least_gb_s;
  std::optional<double> least_share;  // of the floor's rate
  std::optional<double> most_us;
  bool is_judged = false;  // limits are for a GPU

  // Of medians; nothing where that is no time at all, as a difference may be.
  std::optional<double> gb_s() const { return rate(us); }
  std::optional<double> floor_gb_s() const { return rate(floor_us); }
  std::optional<double> share() const;
  // Nothing where there is no limit, or nobody judges. What has no rate keeps no limit of one.
  std::optional<bool> within() const;

 private:
  std::optional<double> rate(const spread& of) const;
};

}  // namespace reprise::bench
