#include "reprise/records/record_summary.hpp"

#include <algorithm>
#include <cmath>

#include "reprise/records/record_elements.hpp"

namespace reprise {

void record_summary::add(const tap_record& record) {
  point_summary& point = points_[recorded_point{record}];
  const bool first = point.records == 0;
  point.first_step = first ? record.step : std::min(point.first_step, record.step);
  point.last_step = std::max(point.last_step, record.step);
  if (record.rows > 0) {
    const std::int64_t last = record.first_row + record.rows - 1;
    point.first_token =
        point.rows == 0 ? record.first_row : std::min(point.first_token, record.first_row);
    point.last_token = point.rows == 0 ? last : std::max(point.last_token, last);
  }
  ++point.records;
  point.rows += static_cast<std::uint64_t>(record.rows);
  point.bytes += record.bytes.size();
  point.requests.insert(record.request);
  point.types.insert(record.type);
  if (record.shards != 1) point.shard_axes.insert(record.shard_axis);
  const auto elements = static_cast<std::size_t>(row_elements(record));
  for (std::int64_t row = 0; row < record.rows; ++row) {
    std::uint64_t bad = 0;
    for (std::size_t i = 0; i < elements; ++i) {
      const std::size_t at = static_cast<std::size_t>(row) * elements + i;
      if (!std::isfinite(element_at(record, at))) ++bad;
    }
    point.bad_elements += bad;
    if (bad != 0) continue;
    point.norm_sum += row_norm(record, row);
    ++point.norms;
  }
}

std::set<std::uint64_t> record_summary::requests() const {
  std::set<std::uint64_t> all;
  for (const auto& [point, what] : points_) all.insert(what.requests.begin(), what.requests.end());
  return all;
}

}  // namespace reprise
