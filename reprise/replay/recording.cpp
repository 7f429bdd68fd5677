#include "reprise/replay/recording.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "reprise/base/clock.hpp"
#include "reprise/base/error.hpp"
#include "reprise/base/fault_points.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/replay/joined_work.hpp"
#include "reprise/replay/recording_state.hpp"
#include "reprise/replay/run_body.hpp"

namespace reprise {

namespace {

// Observers that have made room for a launch hear what became of it.
class marks_of_a_launch {
 public:
  marks_of_a_launch(std::span<const std::shared_ptr<recorded_marks>> marks, site at)
      : marks_{marks}, at_{at} {}
  ~marks_of_a_launch() {
    for (const auto& one : marks_) one->after_launch(at_, launched);
  }
  marks_of_a_launch(const marks_of_a_launch&) = delete;
  marks_of_a_launch& operator=(const marks_of_a_launch&) = delete;

  bool launched = false;

 private:
  std::span<const std::shared_ptr<recorded_marks>> marks_;
  site at_;
};

}  // namespace

recording::recording(std::unique_ptr<state> owned) : state_{std::move(owned)} {}
recording::recording(recording&&) noexcept = default;
recording& recording::operator=(recording&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

recording::~recording() {
  if (!state_) return;
  const auto here = std::source_location::current();
  state_->table->end(state_->device, state_->order.live(), here);
  if (REPRISE_MUTANT(recording_dies_before_its_last_replay)) return;
  try {
    synchronize(here);
  } catch (const error& failure) {
    report_error(failure.what());
  }
}

const contract& recording::terms() const {
  return state_->terms;
}
std::size_t recording::nodes() const {
  return state_->nodes;
}
std::size_t recording::segments() const {
  return state_->segments.size();
}

std::vector<break_cost> recording::breaks() const {
  std::vector<break_cost> all;
  for (const state::segment& one : state_->segments) {
    if (one.between == nullptr) continue;
    const double mean = one.runs == 0 ? 0 : one.us / static_cast<double>(one.runs);
    all.push_back({one.why, one.runs, mean});
  }
  return all;
}

recording_bytes recording::bytes_by_owner() const {
  return state_->bytes();
}

recording_bytes recording::state::bytes() const {
  recording_bytes bytes;
  if (!is_placed) {
    bytes.workspaces = block ? block->workspaces() : 0;
    bytes.buffers = memory.bytes() - bytes.workspaces;
  }
  bytes.pinned = inputs.pinned_bytes() + (ring ? ring->pinned_bytes() : 0);
  bytes.executables = nodes * bytes_per_node;
  return bytes;
}

const recording_phases& recording::phases() const {
  return state_->phases;
}
const std::vector<staged_after_all>& recording::staged_inputs() const {
  return state_->staged_inputs;
}
std::uint64_t recording::replays() const {
  return state_->replays;
}
std::uint64_t recording::staging_waits() const {
  return state_->inputs.waits() + (state_->ring ? state_->ring->waits() : 0);
}
std::uint64_t recording::draws() const {
  return state_->draws;
}
std::size_t recording::staging_slots() const {
  return state_->ring ? state_->ring->slots() : 0;
}
std::shared_ptr<const reason> recording::outputs_held() const {
  return state_->table->refusal();
}

std::shared_ptr<const reason> recording::make_room(site at) {
  for (std::size_t i = 0; i < state_->marks.size(); ++i) {
    auto why = state_->marks[i]->make_room(at);
    if (why == nullptr) continue;
    while (i != 0) state_->marks[--i]->after_launch(at, false);
    return why;
  }
  return nullptr;
}

std::optional<step_result> recording::replay(site at, const step& what, bindings given) {
  if (!state_->terms.fits(what.declared(), given)) return std::nullopt;
  if (!state_->terms.holds(what.declared())) {
    landmark("contract: breached");
    return std::nullopt;
  }
  if (state_->table->refusal() != nullptr || overlaps(what, given)) return std::nullopt;
  return replay_as_checked(at, what, given);
}

step_result recording::replay_as_checked(site at, const step& what, bindings given) {
  marks_of_a_launch marks{state_->marks, at};
  // Ahead of everything that changes: what the caller gave cannot be undone.
  if (!state_->is_debug) check_outputs(what, given, state_->table->outputs());
  const replay_id id = state_->begin(at, what, given);
  for (const auto& one : state_->marks) {
    if (!REPRISE_MUTANT(observers_are_not_told_of_replays)) one->before_launch(at, id);
  }
  for (state::segment& one : state_->segments) {
    state_->launch(at, one);
    marks.launched = true;
    if (one.between) state_->take_break(at, what, one);
  }
  if (state_->is_debug) state_->run_whole_body(at, what, given);
  state_->end(at, what, given);
  return {{ran::replayed, id, nullptr}, state_->table, what.declared().id()};
}

replay_id recording::state::begin(site at, const step& what, bindings given) {
  if (!REPRISE_MUTANT(replay_does_not_wait_for_another_stream)) order.enter(at.stream, at.place);
  table->make_way(at);
  const replay_id id = table->begin(at.stream);
  if (is_debug) return id;  // the body's run stages its inputs
  if (ring) {
    ring->fill(at, given, random_of(what), layout, staged);
  } else {
    inputs.stage(at.stream, given, layout, staged, at.place, random_of(what));
  }
  return id;
}

void recording::state::launch(site at, segment& one) {
  const bool is_first = &one == &segments.front();
  if (one.launched) {
    one.launched->launch(at);
    if (ring && is_first) ring->launched();  // it has the node that brings the inputs
  }
  if (is_first) ++replays;
}

void recording::state::take_break(site at, const step& what, segment& one) {
  landmark("recording: took a break");
  const double began = now_us();
  run_break(at.stream, what.name(), one.why, one.between);
  one.us += now_us() - began;
  ++one.runs;
}

void recording::state::run_whole_body(site at, const step& what, bindings given) {
  const break_taker at_once = [&](std::string_view why, const break_work& work) {
    run_break(at.stream, what.name(), why, work);
  };
  block->restart(at.stream);
  staged = block->keep(layout.bytes(), at.place);
  ++replays;
  body_run run = run_body(at, what, given, layout, staged, *block, {.now = &inputs}, at_once);
  check_outputs(what, given, run.outputs);
  draws = run.draws;
  table->set(std::move(run.outputs));
}

void recording::state::end(site at, const step& what, bindings given) {
  copy_outputs(at, given, table->outputs());
  philox_counter* const random = random_of(what);
  if (random != nullptr && !REPRISE_MUTANT(replay_draws_the_same_again)) random->advance(draws);
}

void recording::move_held_aside(site at) {
  if (!state_->table->has_to_move()) return;
  state_->order.enter(at.stream, at.place);
  state_->table->make_way(at);
}

bool recording::has(bindings given) const {
  return std::ranges::any_of(given, [&](const binding& b) {
    return !b.on_host && state_->block->contains(b.to.data, b.to.bytes());
  });
}

std::shared_ptr<const reason> recording::overlaps(const step& what, bindings given) const {
  if (state_->layout.direct() == 0) return nullptr;
  for (const binding& b : given) {
    if (b.is_output || !state_->layout.is_direct(static_cast<std::size_t>(b.slot))) continue;
    if (!state_->block->contains(b.to.data, b.to.bytes())) continue;
    return std::make_shared<const reason>(
        reason{"inputs overlap",
               {{what.declared().inputs()[static_cast<std::size_t>(b.slot)].name,
                 "memory outside of the recording", "an output of this recording",
                 "clone the output, or declare the input staged"}}});
  }
  return nullptr;
}

void recording::retire(std::source_location place) {
  state_->table->end(state_->device, state_->order.live(), place);
  state_->order.close(place);
}

bool recording::retired(std::source_location place) const {
  return REPRISE_MUTANT(retired_recording_goes_at_once) || state_->order.finished(place);
}

void recording::synchronize(std::source_location place) const {
  state_->order.synchronize(place);
}

stream_id recording::last_stream() const {
  return state_->order.last();
}

}  // namespace reprise
