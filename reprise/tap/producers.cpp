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

producers::producers(std::shared_ptr<tap_core> core, launched_by whom)
    : core_{std::move(core)}, whom_{whom} {}

// Fresh memory, which every stream may use; before the branch is part of the capture.
void producers::begin(stream_ref captured, producer_branch& branch) {
  const auto fresh = [&](std::size_t bytes) {
    return block::fresh(core_->memory, bytes, core_->side);
  };
  const std::size_t most = core_->options.most_points;
  memory_ = std::make_shared<producer_memory>();
  memory_->words = fresh(core_->all.words_per_plan() * sizeof(std::uint64_t));
  memory_->counter = fresh(sizeof(std::uint64_t));
  memory_->taken = fresh(most * sizeof(std::uint64_t));
  if (core_->switches.are_driven()) {
    memory_->driven = fresh((1 + most) * sizeof(std::uint64_t));
    memory_->on = fresh(most);
  }
  slots_.emplace(site{core_->side}, sizeof(std::uint64_t), plan_slots);
  captured.device().api().keep(captured.id(), core_->ring);
  if (whom_ == launched_by::owner) {
    zero_words();
    captured.device().api().keep(captured.id(), memory_);
  }
  const view<std::uint64_t> said{reinterpret_cast<std::uint64_t*>(slots_->memory().data()),
                                 plan_slots};
  brings_ = launch(
      site{branch.ahead()}, bring_plan, read<std::uint64_t>{said},
      read<std::uint64_t>{core_->all.plans()}, write<std::uint64_t>{words_in(memory_->words)},
      inout<std::uint64_t>{words_in(memory_->counter)}, write<std::uint64_t>{slots_->consumed()},
      read<std::uint64_t>{words_in(memory_->driven)}, inout<std::uint8_t>{bytes_in(memory_->on)},
      core_->all.words_per_plan());
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
  nodes_.push_back(launch_producer(at, *core_->ring, one, what, words_in(memory_->words),
                                   words_in(memory_->taken).subview(index, 1), index));
  branch.end(what);
  points_.push_back(one);
}

void producers::end(stream_ref captured, producer_branch& branch) {
  if (points_.empty() || REPRISE_MUTANT(producers_have_no_publisher)) return;
  const node_id publishes =
      launch_publisher(site{branch.behind()}, *core_->ring, words_in(memory_->words),
                       words_in(memory_->taken).subview(0, points_.size()));
  branch.end();
  std::vector<std::uint64_t> ids;
  for (const tapped_point& one : points_) ids.push_back(one.id);
  const node_id shared[] = {brings_, publishes};
  is_switched_ = core_->switches.note(captured, ids, nodes_, shared);
  if (whom_ == launched_by::recording) return;
  const std::uint64_t off = said_to_be_off();
  for (std::size_t i = 0; i < plan_slots; ++i) std::memcpy(slots_->slot(i), &off, sizeof off);
}

// Before they are part of the capture, and done when this returns: its owner may launch the graph
// as soon as he has it.
void producers::zero_words() {
  for (const block* const one : {&memory_->words, &memory_->counter, &memory_->taken}) {
    fill(core_->side, write<std::uint8_t>{bytes_in(*one)}, std::uint8_t{0});
  }
  core_->side.synchronize();
  for (std::size_t i = 0; i < plan_slots; ++i) {
    std::memset(slots_->slot(i), 0, sizeof(std::uint64_t));
  }
  is_set_up_ = true;
}

std::uint64_t producers::said_to_be_off() const {
  return plan_to_bring(core_->all.plan_that_is_off(), points_.size() * descriptor_words);
}

bool producers::are_in(std::span<const node_row> nodes) const {
  return !empty() && std::ranges::find(nodes, brings_, &node_row::id) != nodes.end();
}

void producers::bound(graph_ref of, executable_ref as, twins others) {
  if (is_switched_) core_->switches.bind_anew(of, as, others);
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
  if (asked.is == asked_room::answer::never) {
    const bool recorded = whom_ == launched_by::recording;
    return core_->never_fits(recorded ? "a recorded step" : "a graph of somebody else", points_);
  }
  promised_ = asked.promised;
  return nullptr;
}

void producers::set_up(site at) {
  if (is_set_up_) return;
  for (const block* const one : {&memory_->counter, &memory_->taken}) {
    fill(at, write<std::uint8_t>{bytes_in(*one)}, std::uint8_t{0});
  }
  if (!handles_.empty()) {
    upload_words(at, handles_.data(), handles_.size(), words_in(memory_->driven));
    fill(at, write<std::uint8_t>{bytes_in(memory_->on)}, std::uint8_t{1});
  }
  is_set_up_ = true;
}

// A replay that nobody told of has read a slot, in which nothing is published, and has counted.
void producers::count_again(site at) {
  if (!slots_->is_passed() || REPRISE_MUTANT(launches_past_a_watch_shift_its_plans)) return;
  at.stream.synchronize(at.place);
  const std::uint64_t replays = slots_->replays();
  upload_words(at, &replays, 1, words_in(memory_->counter));
  slots_->meet();
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
  if (whom_ == launched_by::owner) count_again(at);
  if (!brings_plan_) return;
  std::uint64_t said = 0;  // as it was
  if (promised_ != nullptr) {
    const flight& one = *promised_;
    one.plan.write(one.words, points_.size(), core_->all.account(), static_cast<std::uint64_t>(id));
    said = plan_to_bring(core_->all.plan_of(one), one.plan.words(points_.size()));
    is_off_ = false;
  } else if (!is_off_ && !REPRISE_MUTANT(words_of_a_dropped_step_are_left)) {
    said = said_to_be_off();
    is_off_ = true;
  }
  said_in_ = slots_->next(at);
  std::memcpy(said_in_, &said, sizeof said);
  if (whom_ == launched_by::owner && !REPRISE_MUTANT(launches_past_a_watch_publish_again)) {
    const std::uint64_t off = said_to_be_off();
    std::memcpy(slots_->after_next(at), &off, sizeof off);
  }
  if (said != 0) core_->told_plan();
}

void producers::after_launch(site at, bool launched) noexcept {
  if (points_.empty()) return;
  flight* const one = std::exchange(promised_, nullptr);
  if (launched) {
    if (brings_plan_) slots_->launched();
    said_in_ = nullptr;
    if (one != nullptr) core_->launched(*one, at.stream, step_, replay_);
    return;
  }
  is_off_ = false;  // what was to be told was not
  if (std::byte* const said = std::exchange(said_in_, nullptr); said != nullptr) {
    const std::uint64_t off = said_to_be_off();
    std::memcpy(said, &off, sizeof off);
  }
  core_->look_at_switches();
  if (one != nullptr) core_->withdraw(*one);
}

}  // namespace reprise
