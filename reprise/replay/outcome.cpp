#include "reprise/replay/outcome.hpp"

#include <fmt/format.h>

#include <utility>

namespace reprise {

std::string reason::text() const {
  std::string line = rule;
  std::size_t left = breaches.size();
  for (const breach& b : breaches) {
    if (breaches.size() - left == most_breaches_told) break;
    line += fmt::format("; {}: expected {}, actual {}; {}", b.fact, b.expected, b.actual, b.remedy);
    --left;
  }
  if (left != 0) line += fmt::format("; and {} more", left);
  return line;
}

std::shared_ptr<const reason> because(std::string rule, std::vector<breach> breaches) {
  return std::make_shared<const reason>(reason{std::move(rule), std::move(breaches)});
}

}  // namespace reprise
