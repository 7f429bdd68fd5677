#include "reprise/sim/notebook.hpp"

#include <fmt/format.h>

#include <exception>
#include <utility>

namespace reprise::sim {

std::string_view name_of(finding_kind kind) {
  switch (kind) {
    case finding_kind::race: return "race";
    case finding_kind::undeclared_access: return "undeclared access";
    case finding_kind::use_after_free: return "use after free";
    case finding_kind::unwritten_read: return "unwritten read";
    case finding_kind::stale_source: return "stale source";
    case finding_kind::leak: return "leak";
    case finding_kind::misuse: return "misuse";
    case finding_kind::deadlock: return "deadlock";
  }
  return "?";
}

notebook::notebook(std::shared_ptr<journal> into)
    : into_{into ? std::move(into) : std::make_shared<journal>()}, taken_{into_->findings.size()} {}

void notebook::add(std::string line) {
  if (into_->trace.size() < most_lines) into_->trace.push_back(std::move(line));
}

void notebook::add(timeline_row row) {
  if (into_->timeline.size() < most_lines) into_->timeline.push_back(std::move(row));
}

void notebook::reached(std::string_view landmark) {
  if (!into_->landmarks.contains(landmark)) into_->landmarks.emplace(landmark);
}

void notebook::found(finding_kind kind, std::string text) {
  if (!told_.insert(text).second) return;
  add(fmt::format("FOUND {}: {}", name_of(kind), text));
  into_->findings.push_back(
      {kind, std::move(text), into_->trace.size(), std::uncaught_exceptions() != 0});
}

std::string notebook::take_finding() {
  if (taken_ == into_->findings.size()) return {};
  const finding& next = into_->findings[taken_++];
  return fmt::format("the simulator found a fault, {}: {}", name_of(next.kind), next.text);
}

}  // namespace reprise::sim
