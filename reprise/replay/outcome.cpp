#include "reprise/replay/outcome.hpp"

#include <fmt/format.h>

namespace reprise {

std::string reason::text() const {
  std::string line = rule;
  for (const breach& b : breaches) {
    line += fmt::format("; {}: expected {}, actual {}; {}", b.fact, b.expected, b.actual, b.remedy);
  }
  return line;
}

}  // namespace reprise
