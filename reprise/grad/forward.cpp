// The forward of a graphed op, by the way that was found for it (ways.cpp).
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/base/fault_points.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/device/enqueue.hpp"
#include "reprise/grad/apart.hpp"
#include "reprise/grad/graphed_core.hpp"
#include "reprise/grad/state_aside.hpp"

namespace reprise {

namespace {

// Tells these of the marks of a cache's runs while it lives.
class cache_watched {
 public:
  cache_watched(replay_cache& of, std::vector<std::shared_ptr<mark_observer>> observers)
      : of_{of}, is_told_{!observers.empty()} {
    for (auto& one : observers) of_.observe(std::move(one));
  }
  ~cache_watched() {
    if (is_told_) of_.stop_observing();
  }
  cache_watched(const cache_watched&) = delete;
  cache_watched& operator=(const cache_watched&) = delete;

  bool is_told() const { return is_told_; }

 private:
  replay_cache& of_;
  bool is_told_;
};

}  // namespace

forward_result graphed_core::forward(site at, operands given) {
  const call_here alone{*this};
  const std::lock_guard held{turn_};
  lane& here = home(at.stream);
  const std::lock_guard turn{here.turn};
  if (at.stream.capturing()) {
    bound_call bound = bind(at, given);
    forward_result result = run_apart(at, bound);
    ++counts_.eager_forward[static_cast<std::size_t>(eager_cause::suspended)];
    return result;
  }
  here.reap(at.place);  // which may move what the caller gives
  if (!REPRISE_MUTANT(call_waits_for_no_other_stream)) here.enter(at);
  bound_call bound = bind(at, given);

  bound.recorded = bound.given;
  bound.places.resize(parts_->op.declared.outputs().size());
  bind_places(parts_->recorded, parts_->places, bound.places, bound.recorded);
  const way by = find_way(bound.recorded);
  if (by.eager) return run_eagerly(at, bound, *by.eager);
  return by.used != nullptr ? replay(at, bound, *by.used) : capture(at, bound, by);
}

// Checks the operands, and saves what a backward needs of them.
graphed_core::bound_call graphed_core::bind(site at, operands given) const {
  const signature& declared = parts_->op.declared;
  bound_call bound;
  for (const operand& one : given) bound.given.push_back(one.now());
  declared.check(bound.given);
  refuse_outputs_over_inputs(bound.given);
  for (const operand& one : given) {
    if (one.held) one.held->read_on(at.stream);
  }

  bound.call = std::make_shared<forward_call>();
  forward_call& call = *bound.call;
  call.op = parts_;
  call.in_force = precision_now();
  if (declared.random() != nullptr) call.drawn_from = *declared.random();
  for (const declared_use& use : declared.uses()) {
    const auto& count = use.weight->version.shared();
    call.parameters.push_back({count, count->load()});
  }
  for (const declared_word& word : declared.fact_words()) call.words.push_back(word.now());
  for (const declared_word& word : declared.key_words()) call.words.push_back(word.now());
  for (const operand& one : given) {
    if (one.bound.is_output) continue;
    saved_input& saved = call.inputs.emplace_back();
    saved.bound = one.now();
    saved.version = {one.version, one.version ? one.version->load() : 0};
    saved.held = one.held;
    saved.lay_at = saved.bound.to.data;
    if (!one.bound.on_host) continue;
    saved.host.assign(one.bound.to.data, one.bound.to.data + one.bound.to.bytes());
    saved.bound.to.data = saved.host.data();
    bound.has_host_input = true;
  }
  return bound;
}

// A backward reads what the forward was given.
void graphed_core::refuse_outputs_over_inputs(bindings given) const {
  for (const binding& out : given) {
    if (!out.is_output) continue;
    for (const binding& in : given) {
      const bool apart = in.is_output || in.on_host || in.to.bytes() == 0 ||
                         in.to.data + in.to.bytes() <= out.to.data ||
                         out.to.data + out.to.bytes() <= in.to.data;
      if (apart) continue;
      const signature& declared = parts_->op.declared;
      throw usage_error{fmt::format(
          "op '{}': output '{}' is bound over input '{}', which the backward reads; give it memory "
          "of its own",
          name(), declared.outputs()[static_cast<std::size_t>(out.slot)].name,
          declared.inputs()[static_cast<std::size_t>(in.slot)].name)};
    }
  }
}

forward_result graphed_core::replay(site at, bound_call& bound, used_frame& used) {
  frame& in = *used.in;
  lane& here = *home_;
  // All memory first: what fails here leaves owners as they are.
  forward_result result = result_of(bound);
  result.how = ran::replayed;
  make_outputs(at, bound, in.saves.outputs, result, here.results());
  place_outputs(result, bound.places);
  state_aside aside{state_left_alone::is_here(), parts_->op.declared, here.results(), at};
  draws_ = bound.call->drawn_from;

  in.invalidate();
  const std::uint64_t before = in.forward->replays();
  try {
    result.replay = in.forward->replay_as_checked(at, *recorded_forward_, bound.recorded).replay;
  } catch (...) {
    // It runs, and moves state, though an output was not copied: so does the generator move.
    if (in.forward->replays() != before) {
      draws_.advance(in.forward->draws());
      moved_on();
    }
    throw;
  }
  in.publish(bound.call);
  bound.call->in = used.in;
  moved_on();
  leave_states(used.in, result);
  ++(used.is_new ? counts_.forward_shared : counts_.forward_replay);
  used.is_new = false;
  aside.put_back();
  return result;
}

forward_result graphed_core::capture(site at, bound_call& bound, const way& by) {
  lane& here = *home_;
  const auto memory = here.memory_for_a_frame(budget_);
  const auto in = std::make_shared<frame>(home_, memory, budget_);
  in->index = memory->add(in);
  in->scratch_is_apart =
      states_of(options_.conflict) > 1 && !REPRISE_MUTANT(slots_have_their_scratch_in_the_pool);
  // The frame's recording keeps nothing of it: replays are of recorded_forward_, which is the same
  // work.
  const step what{parts_->recorded,
                  [parts = parts_, raw = in.get(), force = bound.call->in_force](step_scope& run) {
                    parts->run_forward(run, raw->saves, force);
                    parts->hand_out_outputs(run, raw->saves);
                  }};
  std::span<std::byte> scratch;
  std::size_t beside = 0;  // of what lies outside of the pool
  const recorder_options options{
      .admit = admission_of(*in, beside),
      .place = [&](std::size_t kept_bytes, std::size_t scratch_bytes, std::size_t own_bytes) {
        in->kept = memory->take(kept_bytes, at.stream, at.place);
        scratch = in->scratch_is_apart ? memory->take_apart(scratch_bytes, at.stream, at.place)
                                       : memory->take(scratch_bytes, at.stream, at.place);
        in->own = here.own_block(own_bytes, at);
        beside = own_bytes;
        return placed_memory{in->kept, scratch, {in->own.data(), in->own.bytes()}};
      }};
  // Whatever fails before the end of this call, state is as before.
  state_aside aside{true, parts_->op.declared, here.results(), at};
  draws_ = bound.call->drawn_from;
  recorded made = [&] {
    try {
      return here.captures().record(at, what, bound.recorded, options);
    } catch (...) {
      memory->give_back(scratch);
      throw;
    }
  }();
  memory->give_back(scratch);

  forward_result result = result_of(bound);
  result.replay = made.first.replay;
  if (!made.made) {
    capture_failed_ = true;
    tell_once(eager_cause::capture_failed, actual_of(*made.first.why));
    reasons_[static_cast<std::size_t>(eager_cause::capture_failed)] = made.first.why;
    result.how = ran::eager;
    result.why = made.first.why;
    bound.call->cause = eager_cause::capture_failed;
    ++counts_.eager_forward[static_cast<std::size_t>(eager_cause::capture_failed)];
    take_outputs(at, bound, made.first.table->outputs(), result, here.results());
    finish(aside);
    return result;
  }
  landmark("graphed op: captured a forward");
  result.how = ran::captured;
  in->forward = *std::move(made.made);
  ++counts_.forward_capture;
  if (by.group != nullptr) {
    if (by.group->slots.size() <= by.slot) by.group->slots.resize(by.slot + 1);
    by.group->slots[by.slot] = in;
    std::erase_if(frames_, [&](const used_frame& used) { return used.group == by.group->id; });
  }
  frames_.push_back({in, by.group != nullptr ? by.group->id : 0, by.slot, false});
  make_outputs(at, bound, in->saves.outputs, result, here.results());
  copy_outputs(at, in->saves.outputs, result);
  in->publish(bound.call);
  bound.call->in = in;
  leave_states(in, result);
  finish(aside);
  return result;
}

// The forward has run: its state and its generator move, unless it is a recompute.
void graphed_core::finish(state_aside& aside) {
  moved_on();
  if (state_left_alone::is_here()) {
    aside.put_back();
  } else {
    aside.let_go();
  }
}

// `beside` is known when it is asked.
admission graphed_core::admission_of(frame& in, const std::size_t& beside) const {
  return [&in, &beside, this](const recording_bytes& needs) -> std::shared_ptr<const reason> {
    const std::size_t bytes = in.share.bytes() + beside + needs.pinned + needs.executables;
    if (needs.executables == 0 || in.share.become(bytes)) return nullptr;
    return because("budget", {{"byte budget", fmt::format("room for {} bytes", bytes),
                               fmt::format("{} of {} bytes held", budget_.held(), budget_.limit()),
                               "give a larger budget, or fewer slots"}});
  };
}

// In the reason of this and of all later calls: the first time is the one that is looked at.
void graphed_core::say_what_differs(bindings given) {
  auto& why = reasons_[static_cast<std::size_t>(eager_cause::key)];
  if (why || frames_.empty() || !frames_.front().in->forward) return;
  const contract& terms = frames_.front().in->forward->terms();
  std::vector<breach> breaches = terms.differences(parts_->recorded, given);
  if (breaches.empty()) breaches = terms.explain(parts_->recorded);
  why = because("key", std::move(breaches));
  tell_once(eager_cause::key, why->text());
}

forward_result graphed_core::run_eagerly(site at, bound_call& bound, eager_cause cause) {
  lane& here = *home_;
  if (cause == eager_cause::key) say_what_differs(bound.recorded);
  tell_once(cause, {});
  state_aside aside{state_left_alone::is_here(), parts_->op.declared, here.results(), at};
  draws_ = bound.call->drawn_from;
  const auto told = watching();
  const step_result run =
      here.eager().run(at, *eager_forward_, bound.given, told, why_eager(cause));
  moved_on();
  forward_result result = result_of(bound);
  result.how = ran::eager;
  result.replay = run.replay;
  result.why = run.why;
  bound.call->cause = cause;
  ++counts_.eager_forward[static_cast<std::size_t>(cause)];
  take_outputs(at, bound, run.table->outputs(), result, here.results());
  aside.put_back();
  return result;
}

// Inside the capture of somebody else: in memory that belongs to that graph.
forward_result graphed_core::run_apart(site at, bound_call& bound) {
  refuse_host_values(bound.has_host_input);
  state_aside aside{state_left_alone::is_here(), parts_->op.declared, home_->results(), at};
  const auto told = watching();
  const body_apart run{at, *eager_forward_, bound.given, home_->results(), told};
  forward_result result = result_of(bound);
  result.how = ran::eager;
  result.why = why_eager(eager_cause::suspended);
  bound.call->cause = eager_cause::suspended;
  take_outputs(at, bound, run.outputs(), result, home_->results());
  aside.put_back();
  return result;
}

void graphed_core::refuse_host_values(bool has_host_input) const {
  if (!has_host_input && parts_->op.declared.random() == nullptr) return;
  throw usage_error{fmt::format(
      "op '{}': it is called inside a capture and {}, which every replay would repeat; "
      "{}",
      name(), has_host_input ? "an operand lies in host memory" : "draws random numbers",
      has_host_input ? "give it on the device" : "call it outside")};
}

forward_result graphed_core::infer(site at, operands given) {
  const call_here alone{*this};
  const std::lock_guard held{turn_};
  lane& here = home(at.stream);
  const std::lock_guard turn{here.turn};
  const bool is_apart = at.stream.capturing();
  if (!is_apart) {
    here.reap(at.place);
    here.enter(at);
  }
  bound_call bound = bind(at, given);
  ++counts_.inference;
  forward_result result;
  if (is_apart) {
    result = run_apart(at, bound);
    result.ticket = {};
    return result;
  }
  if (!inference_) {
    inference_step_.emplace(inference_signature(), [this](step_scope& run) {
      saved_tensors saves;
      parts_->run_forward(run, saves, precision_now());
    });
    inference_ = std::make_unique<replay_cache>(
        at.stream.device(), cache_options{.record = options_.record, .budget = &budget_});
  }
  state_aside aside{state_left_alone::is_here(), parts_->op.declared, here.results(), at};
  const cache_watched told{*inference_, watching()};
  const step_result run = inference_->run(at, *inference_step_, bound.given,
                                          suspended::is_here() ? why_eager(eager_cause::suspended)
                                          : told.is_told()     ? why_eager(eager_cause::observed)
                                                               : nullptr);
  result = result_of(bound);
  result.ticket = {};
  result.how = run.how;
  result.replay = run.replay;
  result.why = run.why;
  take_outputs(at, bound, run.table->outputs(), result, here.results());
  aside.put_back();
  return result;
}

}  // namespace reprise
