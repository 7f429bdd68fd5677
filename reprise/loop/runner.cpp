#include "reprise/loop/runner.hpp"

#include <fmt/format.h>

#include <utility>

#include "reprise/base/error.hpp"

namespace reprise {

namespace {

void require_stand_in(const interceptor& by, const step& own, const step& other) {
  const bool has_its_handles = other.declared().id() == own.declared().id();
  if (has_its_handles && &other != &own) return;
  throw usage_error{
      fmt::format("interceptor '{}': step '{}' cannot stand in for step '{}'; make another "
                  "step with that one's signature, or with a signature::variant() of it",
                  by.name, other.name(), own.name())};
}

}  // namespace

const step* interceptions::ask(const std::shared_ptr<const interceptor>& by,
                               const step_call& call) {
  const auto known = std::ranges::find(entries_, by, &entry::by);
  if (known != entries_.end() && !REPRISE_MUTANT(interceptor_forgets_the_request)) {
    return known->ask(call);
  }
  return entries_.emplace_back(by, by->begin()).ask(call);
}

loop_runner::loop_runner(replay_cache& cache, loop_options options)
    : cache_{&cache},
      options_{options},
      not_opted_in_{std::make_shared<const reason>(reason{"loop did not opt in", {}})} {}

void loop_runner::install(interceptor added) {
  if (!added.begin) {
    throw usage_error{
        fmt::format("interceptor '{}' has no `begin`; give the function that makes what it "
                    "remembers of a request",
                    added.name)};
  }
  if (added.alters_distribution && options_.exact &&
      !REPRISE_MUTANT(exact_runner_takes_what_alters)) {
    throw usage_error{
        fmt::format("interceptor '{}' alters the distribution and this runner is exact; leave it "
                    "out, or make the runner without `exact`",
                    added.name)};
  }
  for (const installed& other : interceptors_) {
    if (other.what->name == added.name) {
      throw usage_error{
          fmt::format("interceptor '{}' is installed already; install it once", added.name)};
    }
    if (added.alters_distribution && other.what->alters_distribution) {
      throw usage_error{
          fmt::format("interceptors '{}' and '{}' both alter the distribution; at most one may",
                      other.what->name, added.name)};
    }
  }
  auto why = std::make_shared<const reason>(reason{"interceptor " + added.name, {}});
  interceptors_.push_back({std::make_shared<const interceptor>(std::move(added)), std::move(why)});
}

step_result loop_runner::take(site at, step_call call, bool may_record, interceptions* of) {
  if (call.what == nullptr) {
    throw usage_error{"a loop yielded a call without a step; yield nothing when it is finished"};
  }
  std::shared_ptr<const reason> eagerly;
  const installed* const by = intercept(call, of);
  if (by != nullptr && !by->what->graph_safe && !REPRISE_MUTANT(unsafe_replacement_is_recorded)) {
    eagerly = by->why;
  }
  if (!may_record && !REPRISE_MUTANT(loop_is_recorded_unasked)) eagerly = not_opted_in_;
  return cache_->run(at, *call.what, call.with, std::move(eagerly));
}

auto loop_runner::intercept(step_call& call, interceptions* of) const -> const installed* {
  if (interceptors_.empty()) return nullptr;
  if (of == nullptr) {
    throw usage_error{
        fmt::format("step '{}': interceptors are installed and the loop's requests keep nothing "
                    "for them; give the request a member `interceptions intercepted`",
                    call.what->name())};
  }
  const installed* by = nullptr;
  const step_call asked = call;
  for (const installed& next : interceptors_) {
    const reprise::step* const other = of->ask(next.what, asked);
    if (other == nullptr) continue;
    require_stand_in(*next.what, *asked.what, *other);
    call.what = other;
    by = &next;
    if (!REPRISE_MUTANT(last_replacement_wins)) break;
  }
  return by;
}

}  // namespace reprise
