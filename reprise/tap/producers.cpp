#include "reprise/tap/producers.hpp"

#include <fmt/format.h>

#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/tap/launch_producer.hpp"

namespace reprise {

namespace {

view<std::uint64_t> words_in(const block& of) {
  return {reinterpret_cast<std::uint64_t*>(of.data()), of.bytes() / sizeof(std::uint64_t)};
}

}  // namespace

producers::producers(std::shared_ptr<tap_core> core) : core_{std::move(core)} {}

// Fresh memory, which every stream may use; before the branch is part of the capture.
void producers::begin(stream_ref captured) {
  words_ =
      block::fresh(core_->memory, core_->all.words_per_plan() * sizeof(std::uint64_t), core_->side);
  arrivals_ =
      block::fresh(core_->memory, core_->options.most_points * sizeof(std::uint64_t), core_->side);
  captured.device().api().keep(captured.id(), core_->ring);
}

void producers::add(step_scope& run, producer_branch& branch, const tapped_point& one,
                    const tensor_ref& what) {
  if (points_.size() == core_->options.most_points) {
    throw usage_error{fmt::format(
        "point {}:{}: a step has {} tapped points and no more; raise monitor_options::most_points, "
        "or watch fewer",
        one.kind, one.layer, points_.size())};
  }
  if (points_.empty()) begin(run);
  const std::size_t index = points_.size();
  const site at{branch.begin(run)};
  nodes_.push_back(launch_producer(at, *core_->ring, one, what, words_in(words_),
                                   words_in(arrivals_).subview(index, 1), index));
  branch.end(what);
  points_.push_back(one);
}

// Only when the set has changed.
void producers::switch_points() {
  if (enabled_version_ == core_->enabled_version()) return;
  for (tapped_point& one : points_) one.enabled = core_->is_enabled(one);
  enabled_version_ = core_->enabled_version();
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

void producers::before_launch(site at, replay_id id) {
  step_ = core_->begin_step();
  replay_ = id;
  if (points_.empty()) return;
  if (!arrivals_are_set_) {
    fill(at,
         write<std::uint8_t>{view<std::uint8_t>{reinterpret_cast<std::uint8_t*>(arrivals_.data()),
                                                arrivals_.bytes()}},
         std::uint8_t{0});
    arrivals_are_set_ = true;
  }
  if (promised_ == nullptr) {
    const bool says_so = words_are_set_ && !is_on_;
    if (says_so && !REPRISE_MUTANT(words_of_a_dropped_step_are_left)) return;
    if (REPRISE_MUTANT(words_of_a_dropped_step_are_left)) return;
    upload_words(at, core_->off_words.data(), points_.size() * descriptor_words, words_in(words_));
    is_on_ = false;
  } else {
    const flight& one = *promised_;
    one.plan.write(one.words, points_.size(), core_->all.account(), static_cast<std::uint64_t>(id));
    upload_words(at, one.words.data(), one.plan.words(points_.size()), words_in(words_));
    is_on_ = true;
  }
  words_are_set_ = true;
  core_->note_upload();
}

void producers::after_launch(site at, bool launched) noexcept {
  flight* const one = std::exchange(promised_, nullptr);
  if (one == nullptr) return;
  if (launched) {
    core_->launched(*one, at.stream, step_, replay_);
    return;
  }
  try {
    at.stream.synchronize(at.place);  // its words may be on their way
  } catch (const error& failed) {
    report_error(failed.what());
  }
  is_on_ = true;  // whatever the device has been told, the next launch tells it anew
  core_->withdraw(*one);
}

}  // namespace reprise
