#include "reprise/replay/recorder.hpp"

#include <fmt/format.h>

#include <exception>
#include <mutex>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/base/fault_points.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/base/mutex.hpp"
#include "reprise/replay/recording_state.hpp"
#include "reprise/replay/warm_up_door.hpp"

namespace reprise {

namespace {

mutex one_capture_per_process;

std::shared_ptr<const reason> failure(std::string_view phase, std::string_view what) {
  return std::make_shared<const reason>(
      reason{"capture failed",
             {{std::string{phase}, "it succeeds", std::string{what},
               "the step ran eagerly; mend what it says and the next call records again"}}});
}

// When making a recording fails, the host waits for the side stream before anything it uses is
// given back, and so that what the caller enqueues next comes after the state was put back.
class settle_on_failure {
 public:
  explicit settle_on_failure(stream_ref side) : side_{side} {}
  ~settle_on_failure() {
    if (std::uncaught_exceptions() == before_) return;
    try {
      side_.synchronize();
    } catch (const error& failed) {
      report_error(failed.what());
    }
  }
  settle_on_failure(const settle_on_failure&) = delete;
  settle_on_failure& operator=(const settle_on_failure&) = delete;

 private:
  stream_ref side_;
  int before_ = std::uncaught_exceptions();
};

}  // namespace

recorder::recorder(device_ref device, eager_runner& fallback)
    : device_{device}, fallback_{fallback}, side_{device}, crossing_{device} {}

recorded recorder::record(site at, const step& what, bindings given) {
  std::shared_ptr<const reason> why;
  {
    const std::lock_guard one{one_capture_per_process};
    std::string_view phase = "preparation";
    try {
      recording made = make(at, what, given, phase);
      phase = "first replay";
      if (std::optional<step_result> first = made.replay(at, given)) {
        first->how = ran::captured;
        return {*std::move(first), std::move(made)};
      }
      why = std::make_shared<const reason>(
          reason{"fact changed while recording", made.terms().explain()});
    } catch (const std::exception& failed) {
      landmark("recorder: gave up and ran eagerly");
      why = failure(phase, failed.what());
    }
  }
  return {fallback_.run(at, what, given, {}, std::move(why)), std::nullopt};
}

recording recorder::make(site at, const step& what, bindings given, std::string_view& phase) {
  const site side{side_, at.place};
  auto state = std::make_unique<recording::state>(device_, what, given);
  const settle_on_failure settle{side_};

  // The warm-up reads what the caller's stream has written, and the caller's stream goes on only
  // when the warm-up has left no trace.
  crossing_.record(at.stream, at.place);
  if (!REPRISE_MUTANT(warm_up_does_not_wait_for_the_caller)) crossing_.wait(side_, at.place);
  phase = "warm-up";
  const taken needs = warm_up(side, what, given, *state);
  if (fault_point("recorder: waits for its warm-up")) side_.synchronize(at.place);

  phase = "capture";
  state->block.emplace(state->memory, side_, needs.bytes, at.place);
  state->draws = needs.draws;
  if (input_ring::serves(device_, given, needs.draws != 0)) {
    state->ring.emplace(side, state->memory, given, state->layout, needs.draws != 0);
    state->inputs = staging{device_};  // the warm-up's copies are done
  }
  const graph captured = capture(side, [&](stream_ref) {
    body_run run = run_body(side, what, given, state->layout, *state->block, nullptr, {},
                            state->ring ? &*state->ring : nullptr);
    state->staged = run.staged;
    state->table->outputs = std::move(run.outputs);
    if (run.draws == needs.draws || REPRISE_MUTANT(capture_may_draw_less)) return;
    throw usage_error{
        fmt::format("step '{}': the body drew {} random numbers in its warm-up and {} now; draw as "
                    "many in every run of the same shapes",
                    what.name(), needs.draws, run.draws)};
  });
  phase = "instantiation";
  state->nodes = captured.size();
  state->replayed.emplace(captured.instantiate(side));

  crossing_.record(side_, at.place);
  if (!REPRISE_MUTANT(caller_does_not_wait_for_the_warm_up)) crossing_.wait(at.stream, at.place);
  return recording{std::move(state)};
}

// What the body's memory needs in one block, and how many random numbers it draws. The warm-up's
// own memory goes back before anything is captured, for which the host waits here.
recorder::taken recorder::warm_up(site side, const step& what, bindings given,
                                  recording::state& state) {
  pool own{device_, "warm-up of " + what.name()};
  run_memory memory{own, side_};
  warm_up_door door{what.declared(), memory, own, side_, side.place};
  try {
    const body_run run = run_body(side, what, given, state.layout, memory, &state.inputs, {});
    if (!REPRISE_MUTANT(warm_up_leaves_what_it_wrote)) door.restore();
    return {memory.needed(), run.draws};
  } catch (...) {
    if (!REPRISE_MUTANT(failed_warm_up_leaves_what_it_wrote)) door.restore();
    throw;
  }
}

}  // namespace reprise
