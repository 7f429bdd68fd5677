#include "reprise/tap/producers.hpp"

#include <fmt/format.h>

#include <algorithm>
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
view<std::uint8_t> bytes_in(const block& of) {
  return {reinterpret_cast<std::uint8_t*>(of.data()), of.bytes()};
}

}  // namespace

producers::producers(std::shared_ptr<tap_core> core) : core_{std::move(core)} {}

// Fresh memory, which every stream may use; before the branch is part of the capture.
void producers::begin(stream_ref captured, producer_branch& branch) {
  const auto fresh = [&](std::size_t bytes) {
    return block::fresh(core_->memory, bytes, core_->side);
  };
  const std::size_t most = core_->options.most_points;
  words_ = fresh(core_->all.words_per_plan() * sizeof(std::uint64_t));
  counter_ = fresh(sizeof(std::uint64_t));
  taken_ = fresh(most * sizeof(std::uint64_t));
  if (core_->switches.are_driven()) {
    driven_ = fresh((1 + most) * sizeof(std::uint64_t));
    on_ = fresh(most);
  }
  slots_.emplace(site{core_->side}, sizeof(std::uint64_t), plan_slots);
  captured.device().api().keep(captured.id(), core_->ring);
  const view<std::uint64_t> said{reinterpret_cast<std::uint64_t*>(slots_->memory().data()),
                                 plan_slots};
  brings_ = launch(site{branch.ahead()}, bring_plan, read<std::uint64_t>{said},
                   read<std::uint64_t>{core_->all.plans()}, write<std::uint64_t>{words_in(words_)},
                   inout<std::uint64_t>{words_in(counter_)},
                   write<std::uint64_t>{slots_->consumed()}, read<std::uint64_t>{words_in(driven_)},
                   inout<std::uint8_t>{bytes_in(on_)}, core_->all.words_per_plan());
}

void producers::add(stream_ref captured, producer_branch& branch, const tapped_point& one,
                    const tensor_ref& what) {
  if (points_.size() == core_->options.most_points) {
    throw usage_error{fmt::format(
        "point {}:{}: a step has {} tapped points and no more; raise monitor_options::most_points, "
        "or watch fewer",
        one.kind, one.layer, points_.size())};
  }
  if (points_.empty()) begin(captured, branch);
  const std::size_t index = points_.size();
  const site at{branch.begin()};
  nodes_.push_back(launch_producer(at, *core_->ring, one, what, words_in(words_),
                                   words_in(taken_).subview(index, 1), index));
  branch.end(what);
  points_.push_back(one);
}

void producers::end(stream_ref captured, producer_branch& branch) {
  if (points_.empty() || REPRISE_MUTANT(producers_have_no_publisher)) return;
  const node_id publishes = launch_publisher(site{branch.behind()}, *core_->ring, words_in(words_),
                                             words_in(taken_).subview(0, points_.size()));
  branch.end();
  std::vector<std::uint64_t> ids;
  for (const tapped_point& one : points_) ids.push_back(one.id);
  const node_id shared[] = {brings_, publishes};
  is_switched_ = core_->switches.note(captured, ids, nodes_, shared);
}

std::span<const node_id> producers::driven() const {
  return core_->switches.are_driven() ? std::span{nodes_} : std::span<const node_id>{};
}

void producers::recorded(graph_ref of, executable_ref as) {
  if (is_switched_) core_->switches.bind(of, as);
}

void producers::recorded(const fixed_executable& as) {
  if (!core_->switches.are_driven()) {
    if (std::exchange(is_switched_, false)) core_->switches.withdraw(nodes_.front());
    return;
  }
  handles_.push_back(nodes_.size());
  for (const node_id one : nodes_) {
    handles_.push_back(static_cast<std::uint64_t>(as.handle(one)));
  }
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
    fill(at, write<std::uint8_t>{bytes_in(*one)}, std::uint8_t{0});
  }
  if (!handles_.empty()) {
    upload_words(at, handles_.data(), handles_.size(), words_in(driven_));
    fill(at, write<std::uint8_t>{bytes_in(on_)}, std::uint8_t{1});
  }
  is_set_up_ = true;
}

void producers::before_launch(site at, replay_id id) {
  brings_plan_ = false;
  if (!points_.empty()) {
    const running what =
        is_switched_ ? core_->switch_producers(promised_ == nullptr) : running::all;
    const bool any_on = std::ranges::any_of(points_, &tapped_point::enabled);
    brings_plan_ = what == running::all || (what == running::as_wanted && any_on);
  }
  step_ = core_->begin_step();
  replay_ = id;
  if (points_.empty()) return;
  set_up(at);
  if (!brings_plan_) return;
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
    if (brings_plan_) slots_->launched();
    if (one != nullptr) core_->launched(*one, at.stream, step_, replay_);
    return;
  }
  is_off_ = false;  // what was to be told was not
  core_->look_at_switches();
  if (one != nullptr) core_->withdraw(*one);
}

}  // namespace reprise
