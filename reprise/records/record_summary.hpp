// What a run holds, point by point, without holding the run: counts, ranges and norms.
#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "reprise/records/recorded_point.hpp"

namespace reprise {

struct point_summary {
  std::uint64_t records = 0;
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;
  std::set<std::uint64_t> requests{};
  std::uint64_t first_step = 0, last_step = 0;
  std::int64_t first_token = 0, last_token = 0;  // of rows; meaningless while rows is 0
  std::set<dtype> types{};
  std::set<int> shard_axes{};      // of records that are shards
  std::uint64_t bad_elements = 0;  // NaN or infinite
  double norm_sum = 0;             // of rows without such elements ...
  std::uint64_t norms = 0;         // ... and how many those are

  double mean_norm() const { return norms == 0 ? 0 : norm_sum / static_cast<double>(norms); }
};

class record_summary {
 public:
  void add(const tap_record& record);
  const std::map<recorded_point, point_summary>& points() const noexcept { return points_; }
  // Of all points together.
  std::set<std::uint64_t> requests() const;

 private:
  std::map<recorded_point, point_summary> points_;
};

}  // namespace reprise
