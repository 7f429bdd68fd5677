// The recordings of a cache: found by key, dropped by use, and kept until their last replay is
// done.
//
// A recording that is dropped marks the end of its last replay and waits in a list; it goes, and
// gives back its bytes, when that has passed. Where room is needed now, the host waits for it. One
// thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <set>
#include <source_location>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "reprise/replay/budget.hpp"
#include "reprise/replay/key_history.hpp"
#include "reprise/replay/recording.hpp"

namespace reprise {

// One recording that is kept, and what was told about it.
struct kept_recording {
  kept_recording(recording r, std::string step_name, byte_budget& budget)
      : made{std::move(r)}, step{std::move(step_name)}, share{budget} {}

  recording made;
  std::string step;
  budget_share share;
  int in_use = 0;                     // by replays that are taking a break now
  int eager_in_a_row = 0;             // because of facts that say run_eagerly
  std::set<std::string> told;         // facts whose breach was logged
  std::uint64_t facts_hash = 0;       // when `why` was made
  std::shared_ptr<const reason> why;  // of its last eager run, told again while nothing changes
};

// While it lives, the recording is not dropped: a break of its replay may run other steps.
class recording_in_use {
 public:
  explicit recording_in_use(kept_recording& one) : one_{one} { ++one_.in_use; }
  ~recording_in_use() { --one_.in_use; }
  recording_in_use(const recording_in_use&) = delete;
  recording_in_use& operator=(const recording_in_use&) = delete;

 private:
  kept_recording& one_;
};

// None of them drops a recording that is in use.
class kept_recordings {
 public:
  kept_recordings(byte_budget& budget, key_history& history, int churn_limit)
      : budget_{budget}, history_{history}, churn_limit_{churn_limit} {}

  // By what contract::hash has read of a call. Null: none fits. One that is found counts as used.
  kept_recording* find(std::uint64_t hash, const signature& declared, bindings given,
                       std::span<const std::uint64_t> parts);
  // The recording of this step whose key differs least from the call's; null: there is none.
  const kept_recording* nearest(const signature& declared, bindings given) const;

  // Charged to the budget, which has room for it by `make_room`.
  kept_recording& keep(recording made, std::string step);
  // Drops the least recently used, and waits for them, until `bytes` more fit; but for those that
  // have an input of the call in their memory. False: it cannot be done.
  bool make_room(std::size_t bytes, bindings given, std::source_location place);

  void drop(kept_recording& gone, std::source_location place);
  // Those that can never be right again: a version has moved on, or memory is gone.
  std::size_t drop_stale(std::source_location place);
  // Throws usage_error when one is in use.
  void drop_all(std::source_location place);
  // Lets go of those dropped whose last replay has passed, and waits for nothing.
  void reap(std::source_location place);
  // The host waits for every replay; all are tried, and the first failure is thrown at the end.
  void drain(std::source_location place);

  std::size_t size() const { return by_use_.size(); }
  std::size_t bytes() const;
  std::uint64_t dropped() const { return dropped_; }
  std::uint64_t staging_waits() const;
  const std::list<kept_recording>& by_use() const { return by_use_; }

 private:
  using place_of = std::list<kept_recording>::iterator;

  template <class May>
  place_of last_used(May&& may_go);
  place_of drop(place_of gone, std::source_location place);
  void let_go(place_of gone);

  byte_budget& budget_;
  key_history& history_;
  int churn_limit_;
  std::list<kept_recording> by_use_;  // the last used first
  std::unordered_multimap<std::uint64_t, place_of> by_key_;
  std::list<kept_recording> retired_;  // dropped, and their last replay may still run
  std::uint64_t dropped_ = 0;
  std::uint64_t waits_of_gone_ = 0;
};

}  // namespace reprise
