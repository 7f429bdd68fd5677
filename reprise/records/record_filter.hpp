// Which records of a run: `point=resid_pre,layer=3,request=7,step=10-20`.
//
// A filter is fields joined by commas; a record passes when it passes each. A field that is left
// out passes everything. Numbers are N, A-B with both ends in it, or several of these joined by
// '+'. Pure values, safe from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/records/tap_record.hpp"

namespace reprise {

// Ends included. No ranges: every number.
struct number_set {
  struct range {
    std::uint64_t first;
    std::uint64_t last;
  };
  std::vector<range> ranges{};

  bool has(std::uint64_t number) const;
  bool touches(range other) const;
};

struct record_filter {
  std::optional<std::string> point{};  // its kind
  std::optional<record_content> content{};
  number_set layer{};  // a point without a layer passes only where this is left out
  number_set shard{};  // a whole tensor is shard 0
  number_set run{};
  number_set step{};
  number_set request{};
  number_set token{};  // a record passes that has one of these

  bool takes(const tap_record& record) const;
};

// Throws usage_error, one line that names the field and lists those that there are. Empty text is
// the filter that takes all.
record_filter parse_record_filter(std::string_view text);

}  // namespace reprise
