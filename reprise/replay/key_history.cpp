#include "reprise/replay/key_history.hpp"

#include "reprise/base/mutant.hpp"

namespace reprise {

key_record& key_history::of(std::uint64_t hash) {
  const auto [at, fresh] = records_.try_emplace(hash);
  kept& found = at->second;
  if (fresh) {
    by_use_.push_front(hash);
    found.place = by_use_.begin();
    if (records_.size() > most_keys) {
      records_.erase(by_use_.back());
      by_use_.pop_back();
    }
  } else {
    by_use_.splice(by_use_.begin(), by_use_, found.place);
  }
  return found.record;
}

void key_history::dropped(std::uint64_t hash, std::uint64_t replays, int churn_limit) {
  key_record& key = of(hash);
  if (replays >= paid_off) {
    key.thrashed = 0;
    return;
  }
  if (++key.thrashed < churn_limit || REPRISE_MUTANT(thrashing_keys_are_recorded_again)) return;
  key.thrashed = churn_limit - 1;  // one more try behind the hold
  key.held_until = key.uses + churn_hold;
}

std::vector<const key_record*> key_history::latest(std::size_t most) const {
  std::vector<const key_record*> found;
  for (const std::uint64_t hash : by_use_) {
    if (found.size() == most) break;
    found.push_back(&records_.at(hash).record);
  }
  return found;
}

}  // namespace reprise
