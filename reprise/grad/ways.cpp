// Where a forward runs: in which frame, in a new one, or eagerly and why.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/grad/graphed_core.hpp"

namespace reprise {

namespace {

// A frame whose memory is gone.
bool is_gone(const frame& one) {
  return one.state == frame_state::released;
}

}  // namespace

bool graphed_core::fits(const frame& one, bindings given) const {
  return one.forward && one.forward->terms().fits(parts_->recorded, given);
}

// Whether this key is one of those that are captured, or may become one.
bool graphed_core::may_capture(bindings given) const {
  std::set<std::uint64_t> keys;
  for (const used_frame& used : frames_) keys.insert(used.in->forward->terms().hash());
  if (keys.size() < static_cast<std::size_t>(options_.keys)) return true;
  std::vector<std::uint64_t> parts;
  return keys.contains(contract::hash(parts_->recorded, given, parts));
}

graphed_core::way graphed_core::find_way(bindings given) {
  if (!options_.record || suspended::is_here()) return way::eagerly(eager_cause::suspended);
  if (!watching().empty()) return way::eagerly(eager_cause::observed);
  if (std::erase_if(frames_, [](const used_frame& used) { return is_gone(*used.in); }) != 0) {
    released_ = true;
  }
  if (capture_failed_) return way::eagerly(eager_cause::capture_failed);
  if (released_) return way::eagerly(eager_cause::released);
  if (parts_->shares) {
    if (region* const here = region::innermost()) return find_in_region(given, *here);
  }

  used_frame* free = nullptr;
  used_frame* oldest = nullptr;
  int matching = 0;
  for (used_frame& used : frames_) {
    if (used.group != 0 || !fits(*used.in, given)) continue;
    ++matching;
    if (!used.in->forward->terms().holds(parts_->recorded)) return way::eagerly(eager_cause::key);
    if (used.in->state == frame_state::poisoned) return way::eagerly(eager_cause::backward);
    if (free == nullptr && !used.in->owes()) free = &used;
    if (oldest == nullptr || used.in->last < oldest->in->last) oldest = &used;
  }
  if (free != nullptr) return way::replaying(*free);
  if (matching == 0 && !may_capture(given)) return way::eagerly(eager_cause::key);
  if (matching < states_of(options_.conflict)) return way::capturing();
  if (std::holds_alternative<hold>(options_.conflict)) return way::eagerly(eager_cause::hold);
  return way::replaying(*oldest);
}

// Ops of one work and key: each has a slot of its own in the region, and the frame there is
// whoever's it is.
graphed_core::way graphed_core::find_in_region(bindings given, region& here) {
  std::vector<std::uint64_t> parts;
  // Gradients that are lent are written where no other op's backward writes.
  const lane::group_key key{parts_->work, options_.returned == gradients::moved,
                            contract::hash(parts_->recorded, given, parts)};
  lane::group* group = home_->find_group(key);
  const auto mine = std::ranges::find_if(
      frames_, [&](const used_frame& used) { return group != nullptr && used.group == group->id; });
  const bool is_known = mine != frames_.end();
  if (!is_known && !may_capture(given)) return way::eagerly(eager_cause::key);
  if (group == nullptr) group = &home_->make_group(key, parts_->recorded);
  if (!is_known) require_same_work(group->declared);

  const std::size_t slot =
      here.slot_for(group->id, this, is_known ? std::optional{mine->slot} : std::nullopt);
  std::shared_ptr<frame> there;
  if (slot < group->slots.size()) there = group->slots[slot].lock();
  if (there == nullptr || is_gone(*there)) return way::capturing(group, slot);
  if (is_known && mine->in == there) return check_frame(*mine, given);
  if (is_known) frames_.erase(mine);
  frames_.push_back({there, group->id, slot, true});
  return check_frame(frames_.back(), given);
}

void graphed_core::require_same_work(const signature& other) const {
  const std::string differs = other.difference(parts_->recorded);
  if (differs.empty()) return;
  throw usage_error{
      fmt::format("op '{}': another op says that it is the same work '{}' and declares '{}' "
                  "differently; give them different words, or the same signature",
                  name(), parts_->work, differs)};
}

graphed_core::way graphed_core::check_frame(used_frame& used, bindings given) {
  if (!fits(*used.in, given) || !used.in->forward->terms().holds(parts_->recorded)) {
    return way::eagerly(eager_cause::key);
  }
  if (used.in->state == frame_state::poisoned) return way::eagerly(eager_cause::backward);
  if (used.in->owes() && std::holds_alternative<hold>(options_.conflict)) {
    return way::eagerly(eager_cause::hold);
  }
  return way::replaying(used);
}

}  // namespace reprise
