#include "reprise/replay/first_run.hpp"

#include <utility>

#include "reprise/base/clock.hpp"
#include "reprise/base/fault_points.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/replay/recorded_body.hpp"

namespace reprise {

first_run::first_run(device_ref device, event& crossing, recorder::job& now,
                     recording::state& state)
    : device_{device},
      crossing_{crossing},
      now_{now},
      state_{state},
      aside_{device, "first run of " + now.what.name()} {}

replay_id first_run::record() {
  const settle_on_failure settle{now_.side.stream};
  now_.phase = "capture";
  save_state();
  try {
    body_run run = run_segments();
    check_outputs(now_.what, now_.given, run.outputs);
    state_.draws = run.draws;
    state_.table->set(std::move(run.outputs));
    state_.end(now_.at, now_.what, now_.given);
    return id_;
  } catch (...) {
    seen_.reset();
    open_.reset();
    if (id_ != replay_id::none) put_back();
    throw;
  }
}

// A break runs for real, so what the body updates is kept from before the first segment on.
void first_run::save_state() {
  for (const declared_write& write : now_.what.declared().writes()) {
    if (!write.restored) continue;
    block copy{aside_, write.where.bytes(), now_.side.stream, now_.at.place};
    copy_bytes(now_.side, write.where.data, copy.data(), copy.bytes());
    saved_.push_back({write.where, std::move(copy)});
  }
  now_.side.stream.synchronize(now_.at.place);  // and so the warm-up's copies are done
  state_.inputs = staging{device_};
}

void first_run::put_back() {
  landmark("first run: put state back");
  if (!REPRISE_MUTANT(failed_first_run_leaves_what_it_wrote)) {
    for (const saved& one : saved_) {
      copy_bytes(now_.at, one.copy.data(), one.where.data, one.copy.bytes());
    }
  }
  now_.at.stream.synchronize(now_.at.place);
}

body_run first_run::run_segments() {
  const signature& declared = now_.what.declared();
  state_.staged = state_.block->keep(state_.layout.bytes(), now_.at.place);
  const bool may_draw = declared.random() != nullptr;
  state_.draws = may_draw ? 1 : 0;  // until it is known how many
  if (input_ring::serves(device_, now_.given, state_.layout, may_draw)) {
    std::byte* const words =
        state_.block->keep(input_ring::device_bytes(state_.layout, may_draw), now_.at.place);
    state_.ring.emplace(now_.side, words, now_.given, state_.layout, may_draw);
  }
  const break_taker ends_a_segment = [this](std::string_view why, const break_work& work) {
    end_segment(why, work);
    begin_segment();
  };
  begin_segment();
  const recorded_body here{true};
  body_run run =
      run_body(now_.side, now_.what, now_.given, state_.layout, state_.staged, *state_.block,
               {.node = state_.ring ? &*state_.ring : nullptr}, ends_a_segment);
  end_segment({}, nullptr);
  return run;
}

void first_run::begin_segment() {
  seen_.emplace(now_.what.declared(), *state_.block, state_.terms);
  open_.emplace(now_.side);
}

void first_run::end_segment(std::string_view why, const break_work& work) {
  const double began = now_us();
  // What a break's own captures touch is none of this graph.
  seen_.reset();
  recording::state::segment& one = state_.segments.emplace_back();
  one.why = why;
  one.between = work;
  {
    const graph captured = open_->end(now_.at.place);
    open_.reset();
    if (captured.size() != 0) {
      state_.nodes += captured.size();
      now_.admit(state_.bytes());
      one.launched.emplace(captured.instantiate(now_.side));
    }
  }
  state_.phases.capture += (now_us() - began) / 1000;
  crossing_.record(now_.side.stream, now_.at.place);
  crossing_.wait(now_.at.stream, now_.at.place);
  if (id_ == replay_id::none) id_ = state_.begin(now_.at, now_.what, now_.given);
  state_.launch(now_.at, one);
  if (one.between == nullptr) return;
  // The break may run steps of its own, which may be recorded.
  now_.lock.unlock();
  now_.in_break = true;
  state_.take_break(now_.at, now_.what, one);
  now_.in_break = false;
  now_.lock.lock();
}

}  // namespace reprise
