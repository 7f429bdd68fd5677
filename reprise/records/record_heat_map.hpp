// A picture of the norms of rows: layers from top to bottom, tokens from left to right; the
// brighter, the larger.
//
// Norms span orders of magnitude (a first token is often a hundred times the others), so grey is
// their logarithm, dark for the smallest and white for the largest of the picture; what no record
// has is black. Where several rows are of one place, it shows their mean. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "reprise/formats/png.hpp"
#include "reprise/records/tap_record.hpp"

namespace reprise {

class record_heat_map {
 public:
  // Rows of one kind and one shard: those of the first record. Throws usage_error for another one:
  // the norm of a part says little of the whole, and less when parts are mixed. Records of scores,
  // of no layer, and rows that are not finite are left out.
  void add(const tap_record& record);

  bool empty() const noexcept { return norms_.empty(); }
  const std::string& kind() const noexcept { return kind_; }
  std::optional<double> norm_at(int layer, std::int64_t token) const;

  // Throws usage_error where there is no row, and where they span more tokens or layers than a
  // picture has room for.
  grey_picture picture() const;

 private:
  struct mean {
    double sum = 0;
    std::uint64_t count = 0;
  };
  std::string kind_;
  int shard_ = 0;
  std::map<std::pair<int, std::int64_t>, mean> norms_;  // by layer and token
};

}  // namespace reprise
