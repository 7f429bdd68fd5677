#include "reprise/replay/recording.hpp"

#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/base/fault_points.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/replay/recording_state.hpp"

namespace reprise {

recording::recording(std::unique_ptr<state> owned) : state_{std::move(owned)} {}
recording::recording(recording&&) noexcept = default;
recording& recording::operator=(recording&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

recording::~recording() {
  if (!state_) return;
  state_->table->current = replay_id::none;
  if (REPRISE_MUTANT(recording_dies_before_its_last_replay)) return;
  try {
    synchronize(std::source_location::current());
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
std::size_t recording::bytes() const {
  const std::size_t ring = state_->ring ? state_->ring->pinned_bytes() : 0;
  return state_->memory.bytes() + state_->inputs.pinned_bytes() + ring;
}
std::uint64_t recording::staging_waits() const {
  return state_->inputs.waits() + (state_->ring ? state_->ring->waits() : 0);
}
std::size_t recording::staging_slots() const {
  return state_->ring ? state_->ring->slots() : 0;
}

std::optional<step_result> recording::replay(site at, bindings given) {
  if (!state_->terms.fits(given)) return std::nullopt;
  if (!state_->terms.holds()) {
    landmark("contract: breached");
    return std::nullopt;
  }
  return replay_as_checked(at, given);
}

step_result recording::replay_as_checked(site at, bindings given) {
  if (!REPRISE_MUTANT(replay_does_not_wait_for_another_stream)) {
    state_->order.enter(at.stream, at.place);
  }
  const replay_id id =
      REPRISE_MUTANT(lease_outlives_a_replay) ? state_->table->current : next_replay();
  state_->table->current = id;
  philox_counter* const random = state_->draws != 0 ? state_->random : nullptr;
  if (state_->ring) {
    state_->ring->fill(at, given, random, state_->layout, state_->staged);
  } else {
    state_->inputs.stage(at.stream, given, state_->layout, state_->staged, at.place, random);
  }
  state_->replayed->launch(at);
  if (state_->ring) state_->ring->launched();
  if (random != nullptr && !REPRISE_MUTANT(replay_draws_the_same_again)) {
    random->advance(state_->draws);
  }
  return {{ran::replayed, id, nullptr}, state_->table};
}

void recording::retire(std::source_location place) {
  state_->table->current = replay_id::none;
  state_->order.close(place);
}

bool recording::retired(std::source_location place) const {
  return REPRISE_MUTANT(retired_recording_goes_at_once) || state_->order.finished(place);
}

void recording::synchronize(std::source_location place) const {
  state_->order.synchronize(place);
}

}  // namespace reprise
