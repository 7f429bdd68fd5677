#include "reprise/replay/eager.hpp"

#include <utility>

#include "reprise/base/mutant.hpp"

namespace reprise {

eager_runner::eager_runner(device_ref device)
    : memory_{device, "eager runs"}, staging_{device}, table_{std::make_shared<output_table>()} {}

eager_runner::~eager_runner() {
  table_->current = replay_id::none;
  try {
    drain(std::source_location::current());
  } catch (const error& failure) {
    report_error(failure.what());
  }
}

step_result eager_runner::run(site at, const step& what, bindings given, observers watching,
                              std::shared_ptr<const reason> why) {
  if (!REPRISE_MUTANT(eager_run_does_not_wait_for_another_stream)) {
    order_.enter(at.stream, at.place);
  }
  // Earlier outputs are void from here on, before the first byte of them is written.
  const replay_id id = next_replay();
  table_->current = id;
  table_->step = what.name();
  table_->of = what.declared().id();

  if (!arena_) arena_ = std::make_unique<run_memory>(memory_, at.stream);
  arena_->restart(at.stream);
  const input_layout layout{given, what.declared().random() != nullptr};
  body_run run = run_body(at, what, given, layout, *arena_, &staging_, watching);
  table_->outputs = std::move(run.outputs);
  if (philox_counter* const random = what.declared().random()) random->advance(run.draws);
  return {{ran::eager, id, std::move(why)}, table_};
}

void eager_runner::drain(std::source_location place) {
  order_.synchronize(place);
}

}  // namespace reprise
