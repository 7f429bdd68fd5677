#include "reprise/replay/cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/base/fault_points.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/replay/recorded_body.hpp"
#include "reprise/replay/stand_in_inputs.hpp"
#include "reprise/telemetry/log.hpp"

namespace reprise {

namespace {

// Of captures, whose graphs would keep addresses that the next run here hands out again, and of
// bodies that are being recorded.
void require_outside(site at, const step& what) {
  if (at.stream.capturing()) {
    throw usage_error{
        fmt::format("step '{}': the stream is being captured; run steps outside of captures, or "
                    "enqueue their work yourself",
                    what.name())};
  }
  if (recorded_body::is_here()) {
    throw usage_error{
        fmt::format("step '{}' is run inside of a body that is being recorded; run it in a break "
                    "of that body, or enqueue its work there",
                    what.name())};
  }
}

}  // namespace

replay_cache::replay_cache(device_ref device, cache_options options)
    : device_{device},
      options_{options},
      own_budget_{options.budget == nullptr ? std::make_unique<byte_budget>(byte_budget::unlimited)
                                            : nullptr},
      budget_{options.budget == nullptr ? own_budget_.get() : options.budget},
      eager_{device},
      kept_{*budget_, history_, options.churn_limit},
      off_{because("recording is off")},
      observed_{because("observer installed",
                        {{"observers", "none", "installed", "take it off to replay again"}})},
      running_{because("recording is running", {{"replays of the recording", "none is running",
                                                 "one takes a break, which runs its step again",
                                                 "run the step outside of its own breaks"}})},
      too_few_uses_{
          because("not admitted yet",
                  {{"uses", fmt::format("{}", options.admit_after), "fewer",
                    "run it more often, prepare it, or lower cache_options::admit_after"}})} {
  if (options_.verify) verifier_.emplace(device_);
}

replay_cache::~replay_cache() = default;

step_result replay_cache::run(site at, const step& what, bindings given,
                              std::shared_ptr<const reason> eagerly) {
  const signature& declared = what.declared();
  declared.check(given);
  require_outside(at, what);
  kept_.reap(at.place);
  if (eagerly) return run_eagerly(at, what, given, std::move(eagerly));
  if (!what.never_captured().empty()) {
    auto& why = never_[what.never_captured()];
    if (!why) why = because(what.never_captured());
    return run_eagerly(at, what, given, why);
  }
  if (!options_.record) return run_eagerly(at, what, given, off_);
  if (!declared.work().empty()) require_same_work(what);
  const std::optional<std::uint64_t> observed = observed_as();
  if (!observed) return run_observed(at, what, given);

  const std::uint64_t hash = contract::hash(declared, given, parts_, *observed);
  kept_recording* const found = kept_.find(hash, declared, given, parts_);
  if (found == nullptr) return run_missed(at, what, given, hash, *observed);
  if (found->in_use != 0) return run_eagerly(at, what, given, running_);
  if (!found->made.terms().holds(declared)) return run_breached(at, what, given, *found);
  if (auto held = found->made.outputs_held()) {
    tell_once(what, "output held", *held);
    return run_eagerly(at, what, given, std::move(held));
  }
  if (auto overlap = found->made.overlaps(what, given)) {
    tell_once(what, "inputs overlap", *overlap);
    return run_eagerly(at, what, given, std::move(overlap));
  }
  found->eager_in_a_row = 0;
  return replay(at, what, given, *found);
}

std::optional<std::uint64_t> replay_cache::observed_as() const {
  std::uint64_t all = 0;
  for (const auto& observer : observers_) {
    const std::uint64_t one = observer->recorded_as();
    if (one == 0) return std::nullopt;
    if (one == mark_observer::leaves_nothing) continue;
    if (!REPRISE_MUTANT(what_is_observed_is_not_in_the_key)) all = all * 0x9e3779b97f4a7c15U + one;
  }
  return all;
}

step_result replay_cache::run_eagerly(site at, const step& what, bindings given,
                                      std::shared_ptr<const reason> why) {
  step_result result = eager_.run(at, what, given, observers_, std::move(why));
  ++counts_.eager;
  ++counts_.eager_reasons[result.why->rule];
  return result;
}

step_result replay_cache::replay(site at, const step& what, bindings given, kept_recording& made) {
  if (auto full = made.made.make_room(at)) {
    tell_once(what, full->rule, *full);
    return run_eagerly(at, what, given, std::move(full));
  }
  const recording_in_use held{made};
  const auto replay_now = [&] { return made.made.replay_as_checked(at, what, given); };
  step_result result = verifier_ ? verifier_->check(at, what, given, replay_now) : replay_now();
  ++counts_.replayed;
  tell_of_bare_run(result.replay);
  return result;
}

void replay_cache::tell_of_bare_run(replay_id id) const {
  for (const auto& observer : observers_) {
    if (observer->recorded_as() == mark_observer::leaves_nothing) observer->on_bare_run(id);
  }
}

step_result replay_cache::run_breached(site at, const step& what, bindings given,
                                       kept_recording& made) {
  landmark("contract: breached");
  const contract& terms = made.made.terms();
  const std::uint64_t facts = terms.hash_of_facts(what.declared());
  if (made.why == nullptr || made.facts_hash != facts) {
    std::vector<breach> breaches = terms.explain(what.declared());
    if (breaches.empty()) return replay(at, what, given, made);  // it was set back meanwhile
    const bool only_memory = breaches.front().actual == contract::freed;
    made.why = because(only_memory ? "memory freed" : "fact changed", std::move(breaches));
    made.facts_hash = facts;
  }
  std::shared_ptr<const reason> why = made.why;
  const bool stays = terms.decides(what.declared()) == on_breach::run_eagerly;
  const bool for_too_long =
      options_.retire_after != 0 && ++made.eager_in_a_row >= options_.retire_after;
  if (stays && !for_too_long) {
    if (made.told.insert(why->breaches.front().fact).second) {
      log_line(fmt::format("step '{}' runs eagerly: {}", what.name(), why->text()));
    }
    return run_eagerly(at, what, given, std::move(why));
  }
  log_line(fmt::format("a recording of step '{}' is retired: {}", what.name(), why->text()));
  step_result result = run_before_drop(at, what, given, std::move(why), made);
  // What moved on concerns others too: they go now, and not when somebody happens to ask for them.
  counts_.evicted += kept_.drop_stale(at.place);
  return result;
}

// Its outputs may be inputs of this very call, so it goes behind the run.
step_result replay_cache::run_before_drop(site at, const step& what, bindings given,
                                          std::shared_ptr<const reason> why, kept_recording& made) {
  const auto drop = [&] {
    kept_.drop(made, at.place);
    ++counts_.evicted;
  };
  try {
    step_result result = [&] {
      const recording_in_use held{made};
      return run_eagerly(at, what, given, std::move(why));
    }();
    drop();
    return result;
  } catch (...) {
    drop();
    throw;
  }
}

step_result replay_cache::run_observed(site at, const step& what, bindings given) {
  const std::uint64_t hash = contract::hash(what.declared(), given, parts_);
  kept_recording* const found = kept_.find(hash, what.declared(), given, parts_);
  if (found != nullptr && found->in_use == 0 && options_.retire_after != 0 &&
      ++found->eager_in_a_row >= options_.retire_after) {
    log_line(
        fmt::format("a recording of step '{}' is retired: {}", what.name(), observed_->text()));
    return run_before_drop(at, what, given, observed_, *found);
  }
  return run_eagerly(at, what, given, observed_);
}

step_result replay_cache::run_missed(site at, const step& what, bindings given, std::uint64_t hash,
                                     std::uint64_t observed) {
  ++counts_.missed;
  key_record& key = history_.of(hash);
  ++key.uses;
  if (auto why = not_admitted(what, given, key)) {
    return run_eagerly(at, what, given, std::move(why));
  }
  return record(at, what, given, hash, observed);
}

void replay_cache::require_same_work(const step& what) {
  const signature& declared = what.declared();
  if (declared.recorded_as() == checked_work_) return;
  std::optional<signature>& known = works_[declared.work()];
  if (!known) known = declared;
  const std::string differs = known->difference(declared);
  if (!differs.empty() && !REPRISE_MUTANT(same_work_is_believed)) {
    throw usage_error{
        fmt::format("step '{}' says that it is the work '{}' and declares '{}' differently than "
                    "another that said so; give it words of its own",
                    what.name(), declared.work(), differs)};
  }
  checked_work_ = declared.recorded_as();
}

std::shared_ptr<const reason> replay_cache::prepare(site at, const step& what,
                                                    std::span<const dims> shapes) {
  const signature& declared = what.declared();
  if (shapes.size() != declared.inputs().size()) {
    throw usage_error{
        fmt::format("step '{}' has {} inputs and {} shapes were given; give one for "
                    "each input, in the order they were declared",
                    what.name(), declared.inputs().size(), shapes.size())};
  }
  require_outside(at, what);
  const stand_in_inputs inputs{at, declared, shapes};
  const bindings like = inputs.given();
  declared.check(like);
  if (!what.never_captured().empty()) return because(what.never_captured());
  if (!options_.record) return off_;
  if (!declared.work().empty()) require_same_work(what);
  const std::uint64_t hash = contract::hash(declared, like, parts_);
  kept_recording* const there = kept_.find(hash, declared, like, parts_);
  if (there != nullptr && there->made.terms().holds(declared)) return nullptr;
  if (there != nullptr) {
    kept_.drop(*there, at.place);
    ++counts_.evicted;
  }
  if (!recorder_) recorder_.emplace(device_, eager_);
  budget_share reserved{*budget_};
  prepared done = recorder_->prepare(at, what, like, options_for(hash, like, reserved, at.place));
  if (!done.made) return std::move(done.why_not);
  ++counts_.prepared;
  keep(*std::move(done.made), what, hash, std::move(reserved));
  return nullptr;
}

void replay_cache::tell_once(const step& what, std::string_view kind, const reason& why) {
  if (!told_.insert(fmt::format("{} {}", what.name(), kind)).second) return;
  log_line(fmt::format("step '{}' runs eagerly: {}", what.name(), why.text()));
}

void replay_cache::observe(std::shared_ptr<mark_observer> observer) {
  observers_.push_back(std::move(observer));
}

void replay_cache::stop_observing() {
  observers_.clear();
}

std::size_t replay_cache::drop_stale(std::source_location place) {
  const std::size_t dropped = kept_.drop_stale(place);
  counts_.evicted += dropped;
  kept_.reap(place);
  return dropped;
}

void replay_cache::sleep(std::source_location place) {
  const std::size_t all = kept_.size();
  kept_.drop_all(place);
  counts_.evicted += all;
  kept_.drain(place);
}

cache_bytes replay_cache::bytes() const {
  return {kept_.bytes(), eager_.bytes(), verifier_ ? verifier_->bytes() : 0};
}

const verification* replay_cache::verified() const {
  return verifier_ ? &verifier_->report() : nullptr;
}

cache_report replay_cache::report() const {
  cache_report all;
  all.counts = counts_;
  all.bytes = bytes();
  all.budget = budget_->limit();
  all.most_held = budget_->most_held();
  for (const kept_recording& one : kept_.by_use()) {
    const recording& made = one.made;
    all.recordings.push_back({one.step, made.terms().key_text(), made.nodes(), made.segments(),
                              made.replays(), made.bytes_by_owner(), made.phases(), made.breaks(),
                              made.staged_inputs()});
  }
  constexpr std::size_t most_rows = 16;
  for (const key_record* const key : history_.latest(most_rows)) {
    if (key->uses != 0) all.missed.push_back({key->step, key->uses, key->differs});
  }
  return all;
}

void replay_cache::drain(std::source_location place) {
  std::exception_ptr first;
  const auto tried = [&](auto&& wait) {
    try {
      wait();
    } catch (const error& failed) {
      if (first == nullptr) first = std::current_exception();
    }
  };
  tried([&] { eager_.drain(place); });
  tried([&] { kept_.drain(place); });
  if (first == nullptr) return;
  if (std::uncaught_exceptions() == 0) std::rethrow_exception(first);
  try {
    std::rethrow_exception(first);
  } catch (const error& failed) {
    report_error(failed.what());
  }
}

}  // namespace reprise
