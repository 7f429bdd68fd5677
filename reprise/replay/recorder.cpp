#include "reprise/replay/recorder.hpp"

#include <fmt/format.h>

#include <exception>
#include <utility>

#include "reprise/base/clock.hpp"
#include "reprise/base/error.hpp"
#include "reprise/base/fault_points.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/replay/first_run.hpp"
#include "reprise/replay/recorded_body.hpp"
#include "reprise/replay/recording_job.hpp"
#include "reprise/replay/warm_up_door.hpp"
#include "reprise/telemetry/log.hpp"

namespace reprise {

namespace {

mutex one_capture_per_process;

std::shared_ptr<const reason> failure(std::string_view phase, std::string_view what) {
  return std::make_shared<const reason>(
      reason{"capture failed",
             {{std::string{phase}, "it succeeds", std::string{what},
               "the step ran eagerly; mend what it says and the next call records again"}}});
}

// Thrown by a break in a rehearsal, which ends there. No std::exception: a body that catches those
// does not catch it.
struct break_reached {};

}  // namespace

recorder::recorder(device_ref device, eager_runner& fallback)
    : device_{device},
      fallback_{fallback},
      side_{device, stream_priority::ahead},
      crossing_{device},
      beside_{device} {}

recorded recorder::record(site at, const step& what, bindings given,
                          const recorder_options& options) {
  std::shared_ptr<const reason> why;
  std::optional<recording> later;
  {
    job now{at, {side_, at.place}, what, given, options, false};
    now.lock = std::unique_lock{one_capture_per_process};
    std::optional<recording> made;
    try {
      state_ptr state = begin(now);
      now.phase = "first replay";
      const double began = now_us();
      if (now.has_breaks && !what.declared().work().empty()) {
        // A replay would take the breaks of the step that was recorded, and not those of this one.
        throw not_admitted{std::make_shared<const reason>(
            reason{"breaks of a step that is built anew",
                   {{what.name(), "no breaks, where same_work_as is said", "a break",
                     "build the step once and leave same_work_as out"}}})};
      }
      if (now.has_breaks && !options.debug) {
        const replay_id id = first_run{device_, crossing_, now, *state}.record();
        state->phases.first_replay = (now_us() - began) / 1000 - state->phases.capture;
        reserve_for_eager_runs(now, *state);
        step_result first{{ran::captured, id, nullptr}, state->table, what.declared().id()};
        return {std::move(first), recording{std::move(state)}};
      }
      made.emplace(recording{std::move(state)});
      now.refused = true;
      why = made->make_room(at);  // what it throws is the caller's own
      now.refused = false;
      if (why != nullptr) {
        later = std::move(made);  // which observers may have room for
      } else if (std::optional<step_result> first = made->replay(at, what, given)) {
        first->how = ran::captured;
        made->state_->phases.first_replay = (now_us() - began) / 1000;
        return {*std::move(first), std::move(made)};
      } else {
        why = std::make_shared<const reason>(
            reason{"fact changed while recording", made->terms().explain(what.declared())});
      }
    } catch (const not_admitted& refused) {
      landmark("recorder: was not admitted");
      why = refused.why;
    } catch (const std::exception& failed) {
      // What is thrown in a break is the step's own, and a step that has run does not run again.
      const bool has_run = made && made->replays() != 0 && !REPRISE_MUTANT(what_has_run_runs_again);
      if (now.in_break || now.refused || has_run) throw;
      landmark("recorder: gave up and ran eagerly");
      why = failure(now.phase, failed.what());
    }
  }
  return {fallback_.run(at, what, given, options.watching, std::move(why)), std::move(later)};
}

prepared recorder::prepare(site at, const step& what, bindings like,
                           const recorder_options& options) {
  job now{at, {side_, at.place}, what, like, options, true};
  return prepare(now);
}

prepared recorder::record_behind(site at, const step& what, bindings like, const run_needs& took,
                                 const recorder_options& options) {
  job now{at, {side_, at.place}, what, like, options, true};
  now.needs = took;
  now.has_run = true;
  return prepare(now);
}

prepared recorder::prepare(job& now) {
  now.lock = std::unique_lock{one_capture_per_process};
  try {
    state_ptr state = begin(now);
    if (now.has_breaks) {
      return {std::nullopt,
              std::make_shared<const reason>(reason{
                  "step has breaks",
                  {{now.what.name(), "no breaks", "a break, which preparing would have to take",
                    "run the step once: that records it"}}})};
    }
    return {recording{std::move(state)}, nullptr};
  } catch (const not_admitted& refused) {
    return {std::nullopt, refused.why};
  } catch (const std::exception& failed) {
    return {std::nullopt, failure(now.phase, failed.what())};
  }
}

// All up to the first replay; of a step with breaks, all up to its first segment.
recorder::state_ptr recorder::begin(job& now) {
  auto state =
      std::make_unique<recording::state>(device_, now.what, now.given, now.options.observed);
  state->is_debug = now.options.debug;
  state->bytes_per_node = device_.api().bytes_per_node(now.at.place);
  const settle_on_failure settle{side_};

  // The warm-up reads what the caller's stream has written, and the caller's stream goes on only
  // when the warm-up has left no trace.
  crossing_.record(now.at.stream, now.at.place);
  if (!REPRISE_MUTANT(warm_up_does_not_wait_for_the_caller)) crossing_.wait(side_, now.at.place);
  double began = now_us();
  if (!now.has_run) {
    now.phase = "warm-up";
    warm_up(now, *state);
  }
  if (fault_point("recorder: waits for its warm-up")) side_.synchronize(now.at.place);
  state->phases.warm_up = (now_us() - began) / 1000;

  if (now.has_breaks && now.options.place) {
    throw not_admitted{because("step has breaks",
                               {{now.what.name(), "no breaks", "a break, in memory that is shared",
                                 "leave the break out, or run the step by a replay_cache"}})};
  }
  if ((now.has_breaks || now.options.debug) && !now.options.watching.empty() &&
      !REPRISE_MUTANT(observed_steps_take_breaks)) {
    throw not_admitted{because("observed step has breaks",
                               {{now.what.name(), "no breaks, where marks are observed", "a break",
                                 "leave the break out, or take the observer off"}})};
  }
  if (!now.has_breaks) {
    now.phase = "capture";
    now.staged_bytes = run_memory::taken_for(state->layout.bytes());
    fallback_.reserve(now.block_bytes(), now.at);
    state->draws = now.needs.draws;
    now.has_ring = !now.options.debug &&
                   input_ring::serves(device_, now.given, state->layout, now.needs.draws != 0);
    if (now.has_ring) {
      now.ring_bytes =
          run_memory::taken_for(input_ring::device_bytes(state->layout, now.needs.draws != 0));
    }
    now.admit_memory(*state);
    place_memory(now, *state);
    if (now.options.debug) {
      state->inputs = staging{device_};
      state->staged = state->block->keep(state->layout.bytes(), now.at.place);
    } else {
      capture_whole(now, *state);
    }
  } else {
    state->block.emplace(state->memory, side_);
  }
  crossing_.record(side_, now.at.place);
  if (!REPRISE_MUTANT(caller_does_not_wait_for_the_warm_up)) {
    crossing_.wait(now.at.stream, now.at.place);
  }
  return state;
}

// Once more for each input that was declared direct and turns out to have a reader that cannot
// follow a word.
void recorder::warm_up(job& now, recording::state& state) {
  if (now.options.debug) state.layout = input_layout{now.what.declared(), now.given};
  for (;;) {
    try {
      rehearse(now, state);
      break;
    } catch (const direct_refused& refused) {
      if (!stage_after_all(now, state, refused)) throw;
    }
  }
  if (now.has_breaks && state.layout.direct() != 0) {
    // Readers behind the break are not known, and a first run cannot be taken back.
    state.layout = input_layout{now.what.declared(), now.given};
  }
}

// What the body's memory needs in one block, and how many random numbers it draws. The warm-up's
// own memory goes back before anything is captured, for which the host waits here.
void recorder::rehearse(job& now, recording::state& state) {
  pool own{device_, "warm-up of " + now.what.name()};
  run_memory memory{own, side_};
  warm_up_door door{now.what.declared(), memory, own, now.side, now.is_prepared};
  now.has_breaks = false;
  const break_taker stops_there = [&](std::string_view, const break_work&) {
    now.has_breaks = true;
    throw break_reached{};
  };
  try {
    state.staged = memory.keep(state.layout.bytes(), now.at.place);
    door.know_inputs(state.layout, state.staged);
    const std::size_t staged = memory.needed();
    try {
      const recorded_body here{true};
      const body_run run = run_body(now.side, now.what, now.given, state.layout, state.staged,
                                    memory, {.now = &state.inputs}, stops_there);
      check_outputs(now.what, now.given, run.outputs);
      now.needs = {memory.needed() - staged, memory.kept() - staged, memory.workspaces(),
                   run.draws};
    } catch (const break_reached&) {
    }
    if (!REPRISE_MUTANT(warm_up_leaves_what_it_wrote)) door.restore();
  } catch (...) {
    if (!REPRISE_MUTANT(failed_warm_up_leaves_what_it_wrote)) door.restore();
    throw;
  }
}

// What a step with breaks needs is known when it has run, and then nothing may fail it.
void recorder::reserve_for_eager_runs(const job& now, const recording::state& state) {
  try {
    fallback_.reserve(state.block->needed(), now.at);
  } catch (const error& failed) {
    report_error(failed.what());
  }
}

bool recorder::stage_after_all(job& now, recording::state& state, const direct_refused& refused) {
  const signature& declared = now.what.declared();
  for (std::size_t slot = 0; slot < state.layout.inputs(); ++slot) {
    if (!state.layout.is_direct(slot)) continue;
    if (state.staged + state.layout.offset(slot) != refused.word()) continue;
    landmark("recorder: staged a direct input after all");
    const std::string& name = declared.inputs()[slot].name;
    state.staged_inputs.push_back({name, refused.reader()});
    log_line(fmt::format(
        "step '{}': the direct input '{}' is staged, since {} reads it and is no kernel that says "
        "`indirect`; declare its cell so, or the input staged",
        now.what.name(), name, refused.reader()));
    state.layout =
        input_layout{declared, now.given, state.layout.direct() & ~(std::uint64_t{1} << slot)};
    return true;
  }
  return false;
}

// Of exactly the size that is known now.
void recorder::place_memory(job& now, recording::state& state) {
  if (!now.options.place) {
    state.block.emplace(state.memory, side_, now.block_bytes(), now.at.place);
    if (now.has_ring) now.ring_words = state.block->keep(now.ring_bytes, now.at.place);
    return;
  }
  const std::size_t kept = now.staged_bytes + now.needs.kept;
  const std::size_t scratch = now.needs.bytes - now.needs.kept;
  const placed_memory placed = now.options.place(kept, scratch, now.ring_bytes);
  state.block.emplace(state.memory, side_, placed);
  state.is_placed = true;
  // What is set up on the side comes behind whoever had that memory before.
  crossing_.record(now.at.stream, now.at.place);
  crossing_.wait(side_, now.at.place);
  now.ring_words = placed.own.data();
}

void recorder::capture_whole(job& now, recording::state& state) {
  double began = now_us();
  if (now.has_ring) {
    state.ring.emplace(now.side, now.ring_words, now.given, state.layout, now.needs.draws != 0);
    state.inputs = staging{device_};  // the warm-up's copies are done
  }
  state.staged = state.block->keep(state.layout.bytes(), now.at.place);
  const break_taker too_late = [&](std::string_view why, const break_work&) {
    throw usage_error{fmt::format(
        "step '{}': the body takes the break '{}' now and took none in its warm-up; take the same "
        "breaks in every run of the same shapes",
        now.what.name(), why)};
  };
  const touched_by_capture touched{now.what.declared(), *state.block, state.terms};
  const graph captured = capture(now.side, [&](stream_ref) {
    const recorded_body here{true};
    body_run run = run_body(now.side, now.what, now.given, state.layout, state.staged, *state.block,
                            {.node = state.ring ? &*state.ring : nullptr}, too_late,
                            now.options.watching, now.options.branches ? &beside_ : nullptr);
    state.table->set(std::move(run.outputs));
    state.marks = std::move(run.marks);
    if (run.draws == now.needs.draws || REPRISE_MUTANT(capture_may_draw_less)) return;
    throw usage_error{
        fmt::format("step '{}': the body drew {} random numbers in its warm-up and {} now; draw as "
                    "many in every run of the same shapes",
                    now.what.name(), now.needs.draws, run.draws)};
  });
  state.phases.capture = (now_us() - began) / 1000;

  now.phase = "instantiation";
  began = now_us();
  state.nodes = captured.size();
  now.admit(state.bytes());
  state.segments.emplace_back().launched.emplace(captured.instantiate(now.side));
  state.phases.instantiation = (now_us() - began) / 1000;
}

}  // namespace reprise
