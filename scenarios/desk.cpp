#include "scenarios/desk.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace reprise::scenarios {

numbers values_of(stream_ref after, view<const std::int32_t> x) {
  numbers host(x.size());
  copy(after, read<std::int32_t>{x},
       write<std::int32_t>{view<std::int32_t>{host.data(), host.size()}});
  after.synchronize();
  return host;
}

void require_equal(std::int64_t actual, std::int64_t expected, std::string_view what,
                   std::source_location from) {
  if (actual == expected) return;
  require(false, fmt::format("{} is {}, not {}", what, actual, expected), from);
}

void require_equal(const numbers& actual, const numbers& expected, std::string_view what,
                   std::source_location from) {
  if (actual == expected) return;
  require(false,
          fmt::format("{} is {}, not {}", what, fmt::join(actual, ","), fmt::join(expected, ",")),
          from);
}

}  // namespace reprise::scenarios
