// Which tickets of a pool are void, because a replay of an earlier frame may have written over
// their frames: a replay of frame i may use memory in which frames captured after it keep their
// state, never before it.
//
// So a replay of i at time t voids every ticket of a frame j > i that is older than t. Kept as a
// stack of (index, time) with both increasing: a newer replay of the same or an earlier frame says
// all that those above it said. A replay costs O(1) amortised, and a look O(log n).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reprise/base/mutant.hpp"
#include "reprise/grad/ticket.hpp"

namespace reprise {

class revocations {
 public:
  // Frame `index` is about to be written, at a time after all tickets before `now`.
  void overwritten(std::uint64_t index, ticket_id now) {
    while (!replays_.empty() && replays_.back().index >= index) replays_.pop_back();
    replays_.push_back({index, now});
  }

  bool is_void(std::uint64_t index, ticket_id ticket) const {
    if (REPRISE_MUTANT(later_frames_are_not_revoked)) return false;
    const auto at = std::ranges::lower_bound(replays_, index, {}, &replay::index);
    return at != replays_.begin() && std::prev(at)->at > ticket;
  }

  // Forgets what no longer tells two of the living frames apart; `living` ascending. To be called
  // when frames have gone.
  void prune(std::span<const std::uint64_t> living) {
    std::vector<replay> kept;
    for (const replay& one : replays_) {
      const auto first_after = std::ranges::upper_bound(living, one.index);
      if (first_after == living.end()) break;  // no frame behind it
      const bool says_more =
          !kept.empty() && std::ranges::upper_bound(living, kept.back().index) == first_after;
      if (says_more) kept.pop_back();  // it is newer, and of the same frames
      kept.push_back(one);
    }
    replays_ = std::move(kept);
  }

  std::size_t size() const { return replays_.size(); }

 private:
  struct replay {
    std::uint64_t index;
    ticket_id at;
  };
  std::vector<replay> replays_;
};

}  // namespace reprise
