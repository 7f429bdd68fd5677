#include "reprise/tap/foreign_taps.hpp"

#include <algorithm>
#include <utility>

namespace reprise {

void foreign_taps::add(std::shared_ptr<foreign_graph> made) {
  std::erase_if(all_, [](const auto& one) { return one->alive.expired(); });
  all_.push_back(std::move(made));
}

std::shared_ptr<foreign_graph> foreign_taps::find(std::span<const node_row> nodes) const {
  const auto found =
      std::ranges::find_if(all_, [&](const auto& one) { return one->works->are_in(nodes); });
  return found == all_.end() ? nullptr : *found;
}

bool foreign_taps::has(std::uint64_t capture) const {
  return std::ranges::any_of(all_, [&](const auto& one) { return one->capture == capture; });
}

}  // namespace reprise
