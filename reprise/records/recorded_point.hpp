// Which point a record is of: what summaries and exports gather records by.
//
// The order is that of kinds, then layers and shards as numbers. Pure values, safe from any thread.
#pragma once

#include <compare>
#include <string>
#include <utility>

#include "reprise/records/tap_record.hpp"

namespace reprise {

struct recorded_point {
  std::string kind;
  int layer = -1;
  int shard = 0;
  int shards = 1;

  recorded_point(std::string of_kind, int of_layer, int which = 0, int of = 1)
      : kind{std::move(of_kind)}, layer{of_layer}, shard{which}, shards{of} {}
  explicit recorded_point(const tap_record& record)
      : recorded_point{std::string{record.kind}, record.layer, record.shard, record.shards} {}

  std::string name() const { return point_name(kind, layer, shard, shards); }
  auto operator<=>(const recorded_point&) const = default;
};

}  // namespace reprise
