// Which keys a cache records, and when: admission by use, by budget and by what became of earlier
// recordings of the key.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "reprise/replay/cache.hpp"

namespace reprise {

// Null: the key may be recorded now.
std::shared_ptr<const reason> replay_cache::not_admitted(const step& what, bindings given,
                                                         key_record& key) {
  if (key.step.empty()) {
    key.step = what.name();
    if (const kept_recording* const near = kept_.nearest(what.declared(), given)) {
      key.differs = near->made.terms().differences(what.declared(), given);
    }
  }
  const auto lasting = [&](const char* rule, auto&& breaches) {
    if (key.last == nullptr || key.last->rule != rule) {
      key.last = because(rule, breaches());
      tell_once(what, rule, *key.last);
    }
    return key.last;
  };
  if (options_.prepared_only) {
    return lasting("not prepared", [&] {
      std::vector<breach> differs = key.differs;
      if (differs.empty()) differs.push_back({what.name(), "a recording", "none", {}});
      for (breach& part : differs) part.remedy = "prepare the step for these shapes";
      return differs;
    });
  }
  if (key.uses < static_cast<std::uint64_t>(options_.admit_after)) return too_few_uses_;
  if (key.uses < key.held_until) {
    ++counts_.thrashed;
    return lasting("churn", [&] {
      return std::vector<breach>{
          {"replays of a recording", fmt::format("{} before it is dropped", key_history::paid_off),
           fmt::format("fewer, {} times in a row", options_.churn_limit),
           fmt::format("raise the budget, or change facts less often; it is tried again after {} "
                       "uses",
                       key_history::churn_hold)}};
    });
  }
  if (key.failures >= options_.failure_limit) {
    return lasting("capture keeps failing", [&] {
      return std::vector<breach>{{"captures", "one succeeds",
                                  fmt::format("{} failed", key.failures),
                                  "mend what the first one said and prepare the step, or declare "
                                  "it eager_only"}};
    });
  }
  // What did not fit then fits now only if others that share the budget hold less. Only a key that
  // was refused asks, since adding up what is held looks at every recording.
  if (key.refused_bytes != 0 &&
      key.refused_bytes > budget_->limit() - (budget_->held() - kept_.bytes())) {
    ++counts_.refused;
    return key.last;
  }
  return nullptr;
}

// Records of keys are looked up anew behind the recorder: a break may run so many others that this
// one is forgotten.
step_result replay_cache::record(site at, const step& what, bindings given, std::uint64_t hash,
                                 std::uint64_t observed) {
  if (!recorder_) recorder_.emplace(device_, eager_);
  budget_share reserved{*budget_};
  recorder_options how = options_for(hash, given, reserved, at.place);
  // What leaves nothing is not there for the recorder: the recording is everybody's.
  std::vector<std::shared_ptr<mark_observer>> leaving;
  std::ranges::copy_if(observers_, std::back_inserter(leaving), [](const auto& one) {
    return one->recorded_as() != mark_observer::leaves_nothing;
  });
  how.watching = leaving;
  how.observed = observed;
  recorded done = recorder_->record(at, what, given, how);
  tell_of_bare_run(done.first.replay);
  if (done.made) keep(*std::move(done.made), what, hash, std::move(reserved));
  if (done.first.how == ran::captured) {
    ++counts_.captured;
    return std::move(done.first);
  }
  key_record& key = history_.of(hash);
  if (!done.made && done.first.why != key.last) ++key.failures;  // and was not refused
  tell_once(what, done.first.why->rule, *done.first.why);
  ++counts_.eager;
  ++counts_.eager_reasons[done.first.why->rule];
  return std::move(done.first);
}

// What a recording needs is charged before it is taken, so that nobody else can have it meanwhile.
recorder_options replay_cache::options_for(std::uint64_t hash, bindings given,
                                           budget_share& reserved, std::source_location place) {
  const auto admit = [this, hash, given, &reserved, place](const recording_bytes& needs) {
    const std::size_t more = needs.total() - std::min(needs.total(), reserved.bytes());
    const std::uint64_t before = kept_.dropped();
    kept_.make_room(more, given, place);
    counts_.evicted += kept_.dropped() - before;
    if (reserved.become(needs.total())) return std::shared_ptr<const reason>{};
    key_record& key = history_.of(hash);
    key.refused_bytes = needs.total();
    key.last = over_budget(needs);
    ++counts_.refused;
    return key.last;
  };
  return {.admit = admit, .debug = options_.debug, .branches = options_.branches};
}

std::shared_ptr<const reason> replay_cache::over_budget(const recording_bytes& needs) const {
  std::string parts = fmt::format("{} bytes, of which {} buffers, {} workspaces, {} pinned",
                                  needs.total(), needs.buffers, needs.workspaces, needs.pinned);
  if (needs.executables != 0) parts += fmt::format(" and {} executables", needs.executables);
  return because("budget", {{"bytes of the recording",
                             fmt::format("at most {} of {}",
                                         budget_->limit() - (budget_->held() - kept_.bytes()),
                                         budget_->limit()),
                             std::move(parts), "raise the budget, or record a smaller step"}});
}

// Its bytes are charged. What a debug recording pins behind its admission is too where it fits.
void replay_cache::keep(recording made, const step& what, std::uint64_t hash,
                        budget_share reserved) {
  key_record& key = history_.of(hash);
  key.failures = 0;
  key.refused_bytes = 0;
  key.last = nullptr;
  const std::size_t bytes = made.bytes();
  kept_recording& kept = kept_.keep(std::move(made), what.name());
  kept.share = std::move(reserved);
  kept.share.become(bytes);
}

}  // namespace reprise
