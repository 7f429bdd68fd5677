#include "reprise/replay/contract.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace reprise {

contract::contract(const signature& declared, bindings given) : shapes_(declared.inputs().size()) {
  for (const binding& b : given) shapes_[static_cast<std::size_t>(b.slot)] = b.to.shape;
  terms_.reserve(declared.facts().size());
  for (const declared_fact& fact : declared.facts()) {
    terms_.push_back({fact, fact.read(fact.object)});
  }
}

bool contract::fits(bindings given) const noexcept {
  return std::ranges::all_of(given, [&](const binding& b) {
    return shapes_[static_cast<std::size_t>(b.slot)] == b.to.shape;
  });
}

bool contract::holds() const noexcept {
  return std::ranges::all_of(
      terms_, [](const term& t) { return t.fact.read(t.fact.object) == t.expected; });
}

std::vector<breach> contract::explain() const {
  std::vector<breach> breaches;
  for (const term& t : terms_) {
    const std::uint64_t actual = t.fact.read(t.fact.object);
    if (actual == t.expected) continue;
    breaches.push_back({t.fact.name, fmt::format("{:#x}", t.expected), fmt::format("{:#x}", actual),
                        t.fact.remedy});
  }
  return breaches;
}

}  // namespace reprise
