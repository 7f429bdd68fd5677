#include "reprise/replay/cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/base/fault_points.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/telemetry/log.hpp"

namespace reprise {

namespace {

std::shared_ptr<const reason> because(std::string rule, std::vector<breach> breaches = {}) {
  return std::make_shared<const reason>(reason{std::move(rule), std::move(breaches)});
}

}  // namespace

replay_cache::replay_cache(device_ref device, cache_options options)
    : device_{device},
      options_{options},
      eager_{device},
      off_{because("recording is off")},
      observed_{because("observer installed")} {
  if (options_.verify) verifier_.emplace(device_);
}

replay_cache::~replay_cache() = default;

step_result replay_cache::run(site at, const step& what, bindings given) {
  what.declared().check(given);
  if (at.stream.capturing()) {
    // Its graph would keep addresses that the next run here hands out again.
    throw usage_error{
        fmt::format("step '{}': the stream is being captured; run steps outside of "
                    "captures, or enqueue their work yourself",
                    what.name())};
  }
  if (!retired_.empty()) reap(at.place);
  family& of = families_[what.declared().id()];
  if (!what.never_captured().empty()) {
    if (!of.never) of.never = because(what.never_captured());
    return run_eagerly(at, what, given, of.never);
  }
  if (!options_.record) return run_eagerly(at, what, given, off_);
  if (!observers_.empty()) return run_eagerly(at, what, given, observed_);

  for (std::size_t i = 0; i < of.recordings.size(); ++i) {
    recording& made = of.recordings[i];
    if (!made.terms().fits(given) && !REPRISE_MUTANT(cache_takes_the_recording_of_another_shape)) {
      continue;
    }
    if (made.terms().holds()) return replay(at, what, given, made);
    std::shared_ptr<const reason> why = broken(what, made);
    retire(of, i, at.place);
    return run_eagerly(at, what, given, std::move(why));
  }
  return record(at, what, given, of);
}

step_result replay_cache::run_eagerly(site at, const step& what, bindings given,
                                      std::shared_ptr<const reason> why) {
  step_result result = eager_.run(at, what, given, observers_, std::move(why));
  ++counts_.eager;
  ++counts_.eager_reasons[result.why->rule];
  return result;
}

step_result replay_cache::replay(site at, const step& what, bindings given, recording& made) {
  const auto replay_now = [&] { return made.replay_as_checked(at, given); };
  step_result result = verifier_ ? verifier_->check(at, what, given, replay_now) : replay_now();
  ++counts_.replayed;
  return result;
}

step_result replay_cache::record(site at, const step& what, bindings given, family& of) {
  const auto failed =
      std::ranges::find_if(of.failures, [&](const auto& entry) { return entry.first.fits(given); });
  if (failed != of.failures.end() && failed->second >= options_.failure_limit) {
    return run_eagerly(at, what, given, because("capture keeps failing"));
  }
  if (!recorder_) recorder_.emplace(device_, eager_);
  recorded done = recorder_->record(at, what, given);
  if (done.made) {
    of.recordings.push_back(*std::move(done.made));
    ++counts_.captured;
    return std::move(done.first);
  }
  if (failed != of.failures.end()) {
    ++failed->second;
  } else {
    of.failures.emplace_back(contract{what.declared(), given}, 1);
    log_line(fmt::format("step '{}' ran eagerly: {}", what.name(), done.first.why->text()));
  }
  ++counts_.eager;
  ++counts_.eager_reasons[done.first.why->rule];
  return std::move(done.first);
}

std::shared_ptr<const reason> replay_cache::broken(const step& what, const recording& made) {
  landmark("contract: breached");
  std::shared_ptr<const reason> why = because("fact changed", made.terms().explain());
  log_line(fmt::format("a recording of step '{}' is retired: {}", what.name(), why->text()));
  return why;
}

void replay_cache::retire(family& of, std::size_t index, std::source_location place) {
  recording gone = std::move(of.recordings[index]);
  of.recordings.erase(of.recordings.begin() + static_cast<std::ptrdiff_t>(index));
  gone.retire(place);
  retired_.push_back(std::move(gone));
}

void replay_cache::reap(std::source_location place) {
  std::erase_if(retired_, [&](const recording& gone) {
    if (!gone.retired(place)) return false;
    waits_of_reaped_ += gone.staging_waits();
    return true;
  });
}

void replay_cache::observe(std::shared_ptr<mark_observer> observer) {
  observers_.push_back(std::move(observer));
}

void replay_cache::stop_observing() {
  observers_.clear();
}

cache_bytes replay_cache::bytes() const {
  cache_bytes total;
  for (const auto& [id, of] : families_) {
    for (const recording& made : of.recordings) total.recordings += made.bytes();
  }
  for (const recording& gone : retired_) total.recordings += gone.bytes();
  total.eager = eager_.bytes();
  if (verifier_) total.verification = verifier_->bytes();
  return total;
}

std::size_t replay_cache::recordings() const {
  std::size_t count = 0;
  for (const auto& [id, of] : families_) count += of.recordings.size();
  return count;
}

std::uint64_t replay_cache::staging_waits() const {
  std::uint64_t waits = waits_of_reaped_;
  for (const auto& [id, of] : families_) {
    for (const recording& made : of.recordings) waits += made.staging_waits();
  }
  for (const recording& gone : retired_) waits += gone.staging_waits();
  return waits;
}

const verification* replay_cache::verified() const {
  return verifier_ ? &verifier_->report() : nullptr;
}

void replay_cache::drain(std::source_location place) {
  eager_.drain(place);
  for (auto& [id, of] : families_) {
    for (const recording& made : of.recordings) made.synchronize(place);
  }
  for (const recording& gone : retired_) gone.synchronize(place);
}

}  // namespace reprise
