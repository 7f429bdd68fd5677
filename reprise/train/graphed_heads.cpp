#include "reprise/train/graphed_heads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/train/part_events.hpp"

namespace reprise {

namespace {

std::string names_of(const std::vector<head_group>& groups) {
  std::string all;
  for (const head_group& one : groups) all += (all.empty() ? "" : ", ") + one.name;
  return all;
}

}  // namespace

graphed_heads::graphed_heads(std::vector<head_group> groups, byte_budget& budget,
                             const part_options& options, std::vector<std::type_index> allowed)
    : life_{"graphed heads", names_of(groups), options}, allowed_{std::move(allowed)} {
  if (groups.empty()) throw usage_error{"graphed heads: there is no group; give one at least"};
  for (head_group& one : groups) {
    groups_.push_back(std::make_unique<one_group>(
        one_group{std::move(one.name), {std::move(one.module), budget, options}}));
  }
}

graphed_heads::one_group& graphed_heads::at(std::size_t group) const {
  if (group < groups_.size()) return *groups_[group];
  throw usage_error{fmt::format("{}: there is no group {}; they count from 0 to {}", life_.title(),
                                group, groups_.size() - 1)};
}

// Whether this call is one of the group's recording; drift ends that for all groups.
bool graphed_heads::records_here(site where, one_group& group) {
  if (!life_.records()) return false;
  const std::string drifted = group.module.drifted(where.stream.device());
  if (drifted.empty()) return true;
  if (!life_.retire(fmt::format("of group '{}': {}", group.name, drifted))) return false;
  bool had = false;
  for (const auto& one : groups_) {
    const std::shared_ptr<graphed> gone = one->module.let_go();
    if (gone == nullptr) continue;
    had = true;
    one->module.dropped(*gone);
  }
  if (had) ++clears_;
  return false;
}

part_call graphed_heads::forward(site where, std::size_t group, const tensor<float>& x,
                                 bool has_target) {
  one_group& one = at(group);
  if (lacks_precision_) ++one.low_precision;
  if (!has_target) ++one.empty_targets;
  const bool records = has_target && records_here(where, one);
  return one.module.forward(where, operand{one.module.module().x, x}, records);
}

tensor<float> graphed_heads::backward(site where, std::size_t group, const part_call& call,
                                      const tensor<float>& dy) {
  one_group& one = at(group);
  static_cast<void>(records_here(where, one));
  return one.module.backward(where, call, dy, true);
}

tensor<float> graphed_heads::infer(site where, std::size_t group, const tensor<float>& x) {
  recorded_module& module = at(group).module;
  return module.infer(where, operand{module.module().x, x});
}

void graphed_heads::observe(const std::shared_ptr<mark_observer>& observer) {
  for (const auto& one : groups_) one->module.observe(observer);
}

void graphed_heads::stop_observing() {
  for (const auto& one : groups_) one->module.stop_observing();
}

bool graphed_heads::is_observed() const {
  return std::ranges::any_of(groups_, [](const auto& one) { return one->module.is_observed(); });
}

// As graphed_network::clear.
void graphed_heads::clear(std::source_location place) {
  if (!REPRISE_MUTANT(fields_are_reset_behind_the_drain)) life_.clear();
  lacks_precision_ = false;
  std::vector<std::pair<recorded_module*, std::shared_ptr<graphed>>> held;
  for (const auto& one : groups_) {
    if (std::shared_ptr<graphed> recorded = one->module.let_go()) {
      held.emplace_back(&one->module, std::move(recorded));
    }
  }
  if (!held.empty()) ++clears_;
  const std::exception_ptr first =
      try_each(held, [&](const auto& one) { one.second->drain(place); });
  for (const auto& [module, recorded] : held) module->dropped(*recorded);
  held.clear();
  if (first != nullptr) std::rethrow_exception(first);
  if (REPRISE_MUTANT(fields_are_reset_behind_the_drain)) life_.clear();
}

void graphed_heads::open(site where) {
  if (!life_.is_on()) return;
  std::string why;
  for (const auto& one : groups_) {
    why = why_not_of(one->module.module());
    if (why.empty()) why = why_not_of(one->module.module(), allowed_);
    if (why.empty()) continue;
    why = fmt::format("of group '{}': {}", one->name, why);
    break;
  }
  if (why.empty()) {
    why = why_not_in(life_.options().in, where.stream.device());
    lacks_precision_ = !why.empty();
  }
  if (why.empty() && is_observed()) why = observed_already;
  life_.open(why, all_counts());
  if (!why.empty()) return;
  for (const auto& one : groups_) one->module.open();
}

void graphed_heads::batch_start() {
  for (const auto& one : groups_) one->module.forget_pending();
}

part_counts graphed_heads::counts(std::size_t group) const {
  const one_group& one = at(group);
  part_counts all;
  all.calls = one.module.counts();
  all.clears = clears_;
  all.retirements = life_.retirements();
  all.low_precision = one.low_precision;
  all.empty_targets = one.empty_targets;
  all.replays_inside_windows = one.module.replays_inside_windows();
  return all;
}

// What the run's end looks at.
part_counts graphed_heads::all_counts() const {
  part_counts all;
  for (const auto& one : groups_) all.calls += one->module.counts();
  return all;
}

}  // namespace reprise
