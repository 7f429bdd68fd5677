#include "reprise/replay/eager.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "reprise/base/fault_points.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/replay/joined_work.hpp"

namespace reprise {

eager_runner::eager_runner(device_ref device) : memory_{device, "eager runs"}, staging_{device} {}

eager_runner::~eager_runner() {
  const auto here = std::source_location::current();
  for (const arena& one : arenas_) one.outputs->end(memory_.device(), order_.live(), here);
  try {
    drain(here);
  } catch (const error& failure) {
    report_error(failure.what());
  }
}

step_result eager_runner::run(site at, const step& what, bindings given, observers watching,
                              std::shared_ptr<const reason> why, run_needs* took) {
  if (running_ && !REPRISE_MUTANT(eager_runs_in_breaks_share_memory)) {
    if (!inner_) inner_ = std::make_unique<eager_runner>(memory_.device());
    return inner_->run(at, what, given, watching, std::move(why), took);
  }
  running_ = true;
  try {
    step_result done = run_here(at, what, given, watching, std::move(why), took);
    running_ = false;
    return done;
  } catch (...) {
    running_ = false;
    throw;
  }
}

step_result eager_runner::run_here(site at, const step& what, bindings given, observers watching,
                                   std::shared_ptr<const reason> why, run_needs* took) {
  if (!REPRISE_MUTANT(eager_run_does_not_wait_for_another_stream)) {
    order_.enter(at.stream, at.place);
  }
  arena& own = arena_apart_from(given, at.stream);
  own.outputs->make_way(at, true);
  own.outputs->belongs_to(what.declared());
  const replay_id id = own.outputs->begin(at.stream);

  run_memory& memory = *own.memory;
  memory.restart(at.stream);
  const signature& declared = what.declared();
  const input_layout layout{declared, given, direct_inputs(declared, given), direct_as::addresses};
  const break_taker breaks = [&](std::string_view name, const break_work& work) {
    run_break(at.stream, what.name(), name, work);
  };
  std::byte* const staged = memory.keep(layout.bytes(), at.place);
  const std::size_t taken = memory.needed();
  body_run run = run_body(at, what, given, layout, staged, memory, {.now = &staging_, .run = id},
                          breaks, watching);
  if (took != nullptr) {
    *took = {memory.needed() - taken, memory.kept() - taken, memory.workspaces(), run.draws};
  }
  check_outputs(what, given, run.outputs);
  copy_outputs(at, given, run.outputs);
  own.outputs->set(std::move(run.outputs));
  if (philox_counter* const random = declared.random()) random->advance(run.draws);
  return {{ran::eager, id, std::move(why)}, own.outputs, declared.id()};
}

// What a run reads it may not write over: an input may be an output of an earlier eager run.
eager_runner::arena& eager_runner::arena_apart_from(bindings given, stream_ref stream) {
  const auto holds_an_input = [&](const arena& one) {
    return std::ranges::any_of(given, [&](const binding& b) {
      return !b.on_host && one.memory->contains(b.to.data, b.to.bytes());
    });
  };
  const bool believed = REPRISE_MUTANT(eager_runs_write_over_their_inputs);
  for (arena& one : arenas_) {
    if (believed || !holds_an_input(one)) return one;
  }
  if (!arenas_.empty()) landmark("eager: ran beside its inputs");
  return arenas_.emplace_back(std::make_unique<run_memory>(memory_, stream),
                              std::make_shared<output_table>());
}

void eager_runner::reserve(std::size_t bytes, site at) {
  arena_apart_from({}, at.stream).memory->reserve(bytes, at.stream, at.place);
}

void eager_runner::drain(std::source_location place) {
  std::exception_ptr first;
  try {
    order_.synchronize(place);
  } catch (const error&) {
    first = std::current_exception();
  }
  if (inner_) inner_->drain(place);
  if (first != nullptr) std::rethrow_exception(first);
}

std::size_t eager_runner::bytes() const {
  return memory_.bytes() + staging_.pinned_bytes() + (inner_ ? inner_->bytes() : 0);
}

}  // namespace reprise
