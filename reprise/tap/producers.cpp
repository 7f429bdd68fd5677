#include "reprise/tap/producers.hpp"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/tap/bring_plan.hpp"
#include "reprise/tap/launch_producer.hpp"

namespace reprise {

namespace {

// More replays than that are not under way at once without a wait; a page of pinned memory.
constexpr std::size_t plan_slots = 256;

view<std::uint64_t> words_in(const block& of) {
  return {reinterpret_cast<std::uint64_t*>(of.data()), of.bytes() / sizeof(std::uint64_t)};
}

}  // namespace

producers::producers(std::shared_ptr<tap_core> core) : core_{std::move(core)} {}

// Fresh memory, which every stream may use; before the branch is part of the capture.
void producers::begin(step_scope& run, producer_branch& branch) {
  const stream_ref captured = run;
  words_ =
      block::fresh(core_->memory, core_->all.words_per_plan() * sizeof(std::uint64_t), core_->side);
  counter_ = block::fresh(core_->memory, sizeof(std::uint64_t), core_->side);
  taken_ =
      block::fresh(core_->memory, core_->options.most_points * sizeof(std::uint64_t), core_->side);
  slots_.emplace(site{core_->side}, sizeof(std::uint64_t), plan_slots);
  captured.device().api().keep(captured.id(), core_->ring);
  const view<std::uint64_t> said{reinterpret_cast<std::uint64_t*>(slots_->memory().data()),
                                 plan_slots};
  launch(site{branch.ahead(run)}, bring_plan, read<std::uint64_t>{said},
         read<std::uint64_t>{core_->all.plans()}, write<std::uint64_t>{words_in(words_)},
         inout<std::uint64_t>{words_in(counter_)}, write<std::uint64_t>{slots_->consumed()},
         core_->all.words_per_plan());
}

void producers::add(step_scope& run, producer_branch& branch, const tapped_point& one,
                    const tensor_ref& what) {
  if (points_.size() == core_->options.most_points) {
    throw usage_error{fmt::format(
        "point {}:{}: a step has {} tapped points and no more; raise monitor_options::most_points, "
        "or watch fewer",
        one.kind, one.layer, points_.size())};
  }
  if (points_.empty()) begin(run, branch);
  const std::size_t index = points_.size();
  const site at{branch.begin(run)};
  nodes_.push_back(launch_producer(at, *core_->ring, one, what, words_in(words_),
                                   words_in(taken_).subview(index, 1), index));
  branch.end(what);
  points_.push_back(one);
}

void producers::end(step_scope& run, producer_branch& branch) {
  if (points_.empty() || REPRISE_MUTANT(producers_have_no_publisher)) return;
  launch_publisher(site{branch.behind(run)}, *core_->ring, words_in(words_),
                   words_in(taken_).subview(0, points_.size()));
  branch.end();
}

// Only when it would say something else.
void producers::switch_points() {
  if (enabled_version_ == core_->enabled_version() && gate_ == core_->gate()) return;
  for (tapped_point& one : points_) one.enabled = core_->is_enabled(one, core_->gate());
  enabled_version_ = core_->enabled_version();
  gate_ = core_->gate();
}

std::shared_ptr<const reason> producers::make_room(site) {
  promised_ = nullptr;
  if (core_->stopped() || points_.empty()) return nullptr;
  switch_points();
  const asked_room asked = core_->ask(points_, core_->requests());
  if (asked.is == asked_room::answer::never) return core_->never_fits("a recorded step", points_);
  promised_ = asked.promised;
  return nullptr;
}

void producers::set_up(site at) {
  if (is_set_up_) return;
  for (const block* const one : {&counter_, &taken_}) {
    const view<std::uint8_t> all{reinterpret_cast<std::uint8_t*>(one->data()), one->bytes()};
    fill(at, write<std::uint8_t>{all}, std::uint8_t{0});
  }
  is_set_up_ = true;
}

void producers::before_launch(site at, replay_id id) {
  step_ = core_->begin_step();
  replay_ = id;
  if (points_.empty()) return;
  set_up(at);
  std::uint64_t said = 0;  // as it was
  if (promised_ != nullptr) {
    const flight& one = *promised_;
    one.plan.write(one.words, points_.size(), core_->all.account(), static_cast<std::uint64_t>(id));
    said = plan_to_bring(core_->all.plan_of(one), one.plan.words(points_.size()));
    is_off_ = false;
  } else if (!is_off_ && !REPRISE_MUTANT(words_of_a_dropped_step_are_left)) {
    said = plan_to_bring(core_->all.plan_that_is_off(), points_.size() * descriptor_words);
    is_off_ = true;
  }
  std::memcpy(slots_->next(at), &said, sizeof said);
  if (said != 0) core_->told_plan();
}

void producers::after_launch(site at, bool launched) noexcept {
  if (points_.empty()) return;
  flight* const one = std::exchange(promised_, nullptr);
  if (launched) {
    slots_->launched();
    if (one != nullptr) core_->launched(*one, at.stream, step_, replay_);
    return;
  }
  is_off_ = false;  // what was to be told was not
  if (one != nullptr) core_->withdraw(*one);
}

}  // namespace reprise
