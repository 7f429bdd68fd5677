#include "reprise/replay/contract.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "reprise/base/mutant.hpp"

namespace reprise {

contract::contract(const signature& declared, bindings given)
    : shapes_(declared.inputs().size()), facts_{declared.facts().begin(), declared.facts().end()} {
  for (const binding& b : given) shapes_[static_cast<std::size_t>(b.slot)] = b.to.shape;
  terms_.reserve(facts_.size());
  for (const declared_fact& fact : facts_) {
    terms_.push_back({fact.read, fact.object, fact.read(fact.object)});
  }
}

bool contract::fits(bindings given) const noexcept {
  return std::ranges::all_of(given, [&](const binding& b) {
    return shapes_[static_cast<std::size_t>(b.slot)] == b.to.shape;
  });
}

bool contract::holds() const noexcept {
  return REPRISE_MUTANT(facts_are_not_looked_at) || std::ranges::all_of(terms_, &term::holds);
}

std::vector<breach> contract::explain() const {
  std::vector<breach> breaches;
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    const std::uint64_t actual = terms_[i].read(terms_[i].object);
    if (actual == terms_[i].expected) continue;
    breaches.push_back({facts_[i].name, fmt::format("{:#x}", terms_[i].expected),
                        fmt::format("{:#x}", actual), facts_[i].remedy});
  }
  return breaches;
}

}  // namespace reprise
