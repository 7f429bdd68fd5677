// How the differences of a re-run read.
#include <fmt/format.h>

#include <array>

#include "reprise/trace/rerun.hpp"

namespace reprise {

std::string_view name_of(difference_kind kind) {
  constexpr std::array<std::string_view, difference_kinds> names{
      "fails now",   "succeeds now", "fails otherwise", "answers otherwise",
      "dead handle", "dead memory",  "beyond memory"};
  return names[static_cast<std::size_t>(kind)];
}

std::string rerun_report::text() const {
  std::string all;
  for (const difference& one : differences) {
    all += fmt::format("call {}, {}: {}\n", one.call, name_of(one.kind), one.text);
  }
  return all;
}

}  // namespace reprise
