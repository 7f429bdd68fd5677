#include "reprise/replay/kept_recordings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/base/fault_points.hpp"
#include "reprise/base/mutant.hpp"

namespace reprise {

kept_recording* kept_recordings::find(std::uint64_t hash, const signature& declared, bindings given,
                                      std::span<const std::uint64_t> parts) {
  const auto [first, last] = by_key_.equal_range(hash);
  for (auto at = first; at != last; ++at) {
    kept_recording& one = *at->second;
    const bool fits = one.made.terms().fits(declared, given, parts);
    if (!fits && !REPRISE_MUTANT(cache_takes_the_recording_of_another_shape)) continue;
    if (!REPRISE_MUTANT(use_is_not_noted)) {
      by_use_.splice(by_use_.begin(), by_use_, at->second);
    }
    return &one;
  }
  return nullptr;
}

const kept_recording* kept_recordings::nearest(const signature& declared, bindings given) const {
  const kept_recording* best = nullptr;
  std::size_t least = 0;
  for (const kept_recording& one : by_use_) {
    if (!one.made.terms().is_of(declared)) continue;
    const std::size_t parts = one.made.terms().differences(declared, given).size();
    if (best != nullptr && parts >= least) continue;
    best = &one;
    least = parts;
  }
  return best;
}

kept_recording& kept_recordings::keep(recording made, std::string step) {
  by_use_.emplace_front(std::move(made), std::move(step), budget_);
  kept_recording& kept = by_use_.front();
  by_key_.emplace(kept.made.terms().hash(), by_use_.begin());
  return kept;
}

bool kept_recordings::make_room(std::size_t bytes, bindings given, std::source_location place) {
  const std::size_t of_others = budget_.held() - this->bytes();
  if (bytes > budget_.limit() - of_others) return false;
  const auto may_go = [&](const kept_recording& one) {
    return (one.in_use == 0 || REPRISE_MUTANT(recordings_in_use_are_dropped)) &&
           (!one.made.has(given) || REPRISE_MUTANT(recordings_that_hold_an_input_are_dropped));
  };
  while (bytes > budget_.free()) {
    const auto passed = std::ranges::find_if(retired_, may_go);
    if (passed != retired_.end()) {
      passed->made.synchronize(place);
      let_go(passed);
      continue;
    }
    const place_of last = last_used(may_go);
    if (last == by_use_.end()) return false;  // what others hold, or what this call needs
    landmark("cache: made room");
    drop(last, place);
  }
  return true;
}

// Least recently, of those that may be dropped.
template <class May>
kept_recordings::place_of kept_recordings::last_used(May&& may_go) {
  if (REPRISE_MUTANT(the_last_used_is_dropped_first)) return std::ranges::find_if(by_use_, may_go);
  const auto found = std::find_if(by_use_.rbegin(), by_use_.rend(), may_go);
  return found == by_use_.rend() ? by_use_.end() : std::prev(found.base());
}

void kept_recordings::drop(kept_recording& gone, std::source_location place) {
  const auto at =
      std::ranges::find_if(by_use_, [&](const kept_recording& one) { return &one == &gone; });
  drop(at, place);
}

kept_recordings::place_of kept_recordings::drop(place_of gone, std::source_location place) {
  const std::uint64_t hash = gone->made.terms().hash();
  const auto [first, last] = by_key_.equal_range(hash);
  for (auto at = first; at != last; ++at) {
    if (at->second != gone) continue;
    by_key_.erase(at);
    break;
  }
  history_.dropped(hash, gone->made.replays(), churn_limit_);
  ++dropped_;
  const place_of next = std::next(gone);
  retired_.splice(retired_.end(), by_use_, gone);
  retired_.back().made.retire(place);
  return next;
}

std::size_t kept_recordings::drop_stale(std::source_location place) {
  std::size_t count = 0;
  for (auto at = by_use_.begin(); at != by_use_.end();) {
    const bool stays = at->in_use != 0 || !at->made.terms().is_stale();
    if (stays || REPRISE_MUTANT(stale_recordings_are_kept)) {
      ++at;
      continue;
    }
    at = drop(at, place);
    ++count;
  }
  return count;
}

void kept_recordings::drop_all(std::source_location place) {
  const auto in_use =
      std::ranges::find_if(by_use_, [](const kept_recording& one) { return one.in_use != 0; });
  if (in_use != by_use_.end()) {
    throw usage_error{
        fmt::format("a break of step '{}' drops the recordings of its own cache; do "
                    "it when the step has run",
                    in_use->step)};
  }
  while (!by_use_.empty()) drop(by_use_.begin(), place);
}

void kept_recordings::reap(std::source_location place) {
  for (auto at = retired_.begin(); at != retired_.end();) {
    const place_of one = at++;
    if (one->made.retired(place)) let_go(one);
  }
}

void kept_recordings::let_go(place_of gone) {
  waits_of_gone_ += gone->made.staging_waits();
  retired_.erase(gone);
}

void kept_recordings::drain(std::source_location place) {
  std::exception_ptr first;
  for (const auto* const list : {&by_use_, &retired_}) {
    for (const kept_recording& one : *list) {
      try {
        one.made.synchronize(place);
      } catch (const error&) {
        if (first == nullptr) first = std::current_exception();
      }
    }
  }
  if (first != nullptr) std::rethrow_exception(first);
  reap(place);
}

std::size_t kept_recordings::bytes() const {
  std::size_t total = 0;
  for (const kept_recording& one : by_use_) total += one.share.bytes();
  for (const kept_recording& one : retired_) total += one.share.bytes();
  return total;
}

std::uint64_t kept_recordings::staging_waits() const {
  std::uint64_t waits = waits_of_gone_;
  for (const kept_recording& one : by_use_) waits += one.made.staging_waits();
  for (const kept_recording& one : retired_) waits += one.made.staging_waits();
  return waits;
}

}  // namespace reprise
