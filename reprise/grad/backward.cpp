// The backward of a graphed op: whose state it may run on, and how.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "reprise/base/clock.hpp"
#include "reprise/base/error.hpp"
#include "reprise/base/fault_points.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/device/enqueue.hpp"
#include "reprise/grad/apart.hpp"
#include "reprise/grad/owed_backward.hpp"
#include "reprise/grad/state_aside.hpp"

namespace reprise {

namespace {

// Whether an operand that is read where it lies, by its word, lies elsewhere by now.
bool has_moved(const forward_call& call, std::uint64_t direct) {
  return std::ranges::any_of(call.inputs, [&](const saved_input& one) {
    return (direct >> one.bound.slot & 1) != 0 && one.now().to.data != one.lay_at;
  });
}

// The streams that the works of this thread go to while it lives: a body that throws has not joined
// its branches.
class branches_seen {
 public:
  branches_seen() : watch_{[this](stream_ref stream, const work&) { seen_.insert(stream.id()); }} {}
  void synchronize(device_ref device) { device.state().wait_for(seen_); }

 private:
  std::set<stream_id> seen_;
  submission_watch watch_;
};

}  // namespace

grad_result graphed_core::backward(site at, const forward_ticket& ticket, operands cotangents,
                                   const wanted& what) {
  const call_here alone{*this};
  const std::lock_guard held{turn_};
  check_ticket(ticket);
  // A frame stays in the lane that it was captured in, also over a reset().
  const std::shared_ptr<frame> in = ticket.call()->in;
  const std::shared_ptr<lane> here = in ? in->in : (home(at.stream), home_);
  const std::lock_guard turn{here->turn};
  const bool is_apart = at.stream.capturing();
  if (!is_apart) {
    here->reap(at.place);  // which may move what the caller gives
    here->enter(at);
  }
  owed_backward owed = owed_by(at, ticket, cotangents, what);
  owed.here = here;
  owed.is_apart = is_apart;
  for (const saved_input& one : owed.call->inputs) {
    if (one.held) one.held->read_on(at.stream);
  }
  require_unchanged(*owed.call);
  if (is_apart) refuse_deliveries(owed);

  grad_result result = [&] {
    if (!in) return run_again(at, owed, owed.call->cause);
    if (owed.is_apart || suspended::is_here() || !options_.record) {
      return run_again(at, owed, eager_cause::suspended);
    }
    if (in->state == frame_state::released) return run_again(at, owed, eager_cause::released);
    if (in->state == frame_state::poisoned) return run_again(at, owed, eager_cause::backward);
    if (!in->forward->terms().holds(parts_->recorded)) {
      return run_again(at, owed, eager_cause::key);
    }
    return run_on_frame(at, owed);
  }();
  owed.call->is_done = true;
  return result;
}

grad_result graphed_core::run_on_frame(site at, owed_backward& owed) {
  frame& in = *owed.call->in;
  if (!in.is_owned_by(owed.call->ticket) || has_moved(*owed.call, in.saves.direct)) {
    replay_stale(at, owed);
  }
  // Before it runs: it may rewind what it reads.
  if (!REPRISE_MUTANT(backward_leaves_its_ticket)) {
    in.state = frame_state::consumed;
    in.owner = ticket_id::none;
  }
  if (in.backward) {
    const backward_part& part = *in.backward;
    if (part.products != owed.in_force.products && !REPRISE_MUTANT(backward_ignores_precision)) {
      return run_on_static_state(at, owed, eager_cause::precision);
    }
    const std::vector<std::int32_t> rules = rules_for(owed);
    std::vector<std::uint64_t> places;
    const std::vector<binding> given = bind_backward(part, owed, rules, &places);
    const bool fits = (owed.wanted & ~part.wanted) == 0 &&
                      part.made->terms().fits(part.what->declared(), given) &&
                      part.made->terms().holds(part.what->declared());
    if (!fits) {
      tell_once(
          eager_cause::key,
          "a backward asks for other gradients, or gives other cotangents, than the first one");
      return run_on_static_state(at, owed, eager_cause::key);
    }
    return replay_backward(at, owed, given, places);
  }
  return run_on_static_state(
      at, owed, in.backward_failed ? std::optional{eager_cause::backward} : std::nullopt);
}

// The forward once more, from what was saved for it: with the random numbers of its ticket, and
// state as it is.
void graphed_core::replay_stale(site at, owed_backward& owed) {
  landmark("graphed op: replayed a stale forward");
  forward_call& call = *owed.call;
  frame& in = *call.in;
  const double began = now_us();
  const bool by_pool = in.lost_to_the_pool(call.ticket);
  std::vector<binding> given;
  for (saved_input& one : call.inputs) {
    given.push_back(one.now());
    one.lay_at = given.back().to.data;
  }
  state_aside aside{true, parts_->op.declared, owed.here->results(), at};
  draws_ = call.drawn_from;
  in.invalidate();
  std::vector<std::uint64_t> nowhere(parts_->op.declared.outputs().size());
  bind_places(parts_->recorded, parts_->places, nowhere, given);
  in.forward->replay_as_checked(at, *recorded_forward_, given);
  in.publish(owed.call);
  aside.put_back();
  if (REPRISE_MUTANT(recompute_advances_the_generator)) moved_on();
  ++counts_.stale_replay;
  if (by_pool) ++counts_.stale_by_pool;
  counts_.stale_us += now_us() - began;
}

grad_result graphed_core::replay_backward(site at, owed_backward& owed, bindings given,
                                          std::vector<std::uint64_t>& places) {
  frame& in = *owed.call->in;
  backward_part& part = *in.backward;
  grad_result result = empty_gradients();
  const bool moves = options_.returned == gradients::moved;
  if (!moves) {
    make_gradients(at, owed, result);
    for (std::size_t i = 0; i < result.gradients.size(); ++i) {
      if (!result.gradients[i]) continue;
      places[i] = reinterpret_cast<std::uintptr_t>(result.gradients[i]->at.data);
    }
  }
  const std::uint64_t before = part.made->replays();
  step_result run = [&] {
    try {
      return part.made->replay_as_checked(at, *part.what, given);
    } catch (...) {
      if (part.made->replays() != before) {
        note_delivered(owed, part.delivers, false);
      } else if (before == 0) {
        in.state = frame_state::poisoned;
      }
      throw;
    }
  }();
  note_delivered(owed, part.delivers, true);
  result.how = ran::replayed;
  result.replay = run.replay;
  if (moves) lend_gradients(owed, part, run, result);
  ++counts_.backward_replay;
  return result;
}

// Eagerly on what the forward left. The first one is recorded behind it.
grad_result graphed_core::run_on_static_state(site at, owed_backward& owed,
                                              std::optional<eager_cause> cause) {
  frame& in = *owed.call->in;
  grad_result result = empty_gradients();
  backward_part part = backward_over(in, owed);
  run_needs took;
  branches_seen branches;
  try {
    const std::vector<block> sums = make_sums(at, owed, in.running, owed.here->zero(at));
    in.running.in_force = owed.in_force;
    const std::vector<std::int32_t> rules(parts_->trained.size());
    const step_result run =
        owed.here->eager().run(at, *part.what, bind_backward(part, owed, rules, nullptr), {},
                               cause ? why_eager(*cause) : nullptr, &took);
    make_gradients(at, owed, result);
    copy_gradients(at, result, part.gradient_slots, run.table->outputs());
    part.delivers = in.running.delivered;
    put_sums(at, owed, in.running, sums);
    result.replay = run.replay;
  } catch (const direct_refused& failed) {
    // A kernel of the backward cannot follow the word of a direct input; an eager run has none.
    in.running = {};
    fail_backward(in, because("backward", {{name(), "kernels that follow direct inputs",
                                            failed.what(), "declare the input staged"}}));
    return run_again(at, owed, eager_cause::backward);
  } catch (const out_of_memory& failed) {
    in.running = {};
    if (cause) throw;
    tell_once(eager_cause::released, failed.what());
    branches.synchronize(at.stream.device());
    release_pool(in, at.place);
    return run_again(at, owed, eager_cause::released);
  }
  in.running = {};
  result.how = cause ? ran::eager : ran::captured;
  if (cause) {
    tell_once(*cause, {});
    result.why = why_eager(*cause);
    ++counts_.eager_backward[static_cast<std::size_t>(*cause)];
    return result;
  }
  owed.call->is_done = true;
  if (capture_backward(at, owed, std::move(part), took)) {
    ++counts_.backward_capture;
    return result;
  }
  result.how = ran::eager;
  result.why = why_eager(eager_cause::backward);
  ++counts_.eager_backward[static_cast<std::size_t>(eager_cause::backward)];
  return result;
}

bool graphed_core::capture_backward(site at, owed_backward& owed, backward_part part,
                                    const run_needs& took) {
  frame& in = *owed.call->in;
  frame_memory& memory = *in.memory;
  const bool moves = options_.returned == gradients::moved;
  std::span<std::byte> kept;
  std::span<std::byte> scratch;
  const std::size_t charged = in.share.bytes();
  std::size_t beside = 0;  // of what lies outside of the pool
  const recorder_options options{
      .admit = admission_of(in, beside),
      .place = [&](std::size_t kept_bytes, std::size_t scratch_bytes, std::size_t own_bytes) {
        part.own = owed.here->own_block(own_bytes, at);
        beside = own_bytes + (moves ? kept_bytes : 0);
        // Gradients that are handed out where they lie are written by this backward alone.
        if (moves) {
          part.lent = owed.here->own_block(kept_bytes, at);
          kept = {part.lent.data(), part.lent.bytes()};
        } else {
          kept = memory.take(kept_bytes, at.stream, at.place);
        }
        scratch = memory.take(scratch_bytes, at.stream, at.place);
        return placed_memory{kept, scratch, {part.own.data(), part.own.bytes()}};
      }};
  in.running = {};
  in.running.in_force = owed.in_force;
  const std::vector<std::int32_t> rules(parts_->trained.size());
  part.products = owed.in_force.products;
  std::vector<std::uint64_t> nowhere;
  prepared made = owed.here->captures().record_behind(
      at, *part.what, bind_backward(part, owed, rules, &nowhere), took, options);
  // Only while it runs does a backward use its memory, so all others may, too.
  memory.give_back(scratch);
  if (!moves) memory.give_back(kept);
  if (!made.made) {
    in.share.become(charged);
    fail_backward(in, made.why_not);
    return false;
  }
  landmark("graphed op: captured a backward");
  part.made = *std::move(made.made);
  in.backward = std::move(part);
  memory.close();
  return true;
}

void graphed_core::fail_backward(frame& in, std::shared_ptr<const reason> why) {
  in.backward_failed = true;
  tell_once(eager_cause::backward, actual_of(*why));
  reasons_[static_cast<std::size_t>(eager_cause::backward)] = std::move(why);
}

// Whether a gradient is written or added is the call's to say, and a graph would repeat what this
// one says; nor is it there before the graph is launched.
void graphed_core::refuse_deliveries(const owed_backward& owed) const {
  if (!owed.parameters || parts_->trained.empty()) return;
  throw usage_error{
      fmt::format("op '{}': a backward that trains parameters is called inside a capture, which "
                  "would repeat whether it writes or adds; want no parameters, or call it outside",
                  name())};
}

// Forward and backward, eagerly, in memory that is used again.
grad_result graphed_core::run_again(site at, owed_backward& owed, eager_cause cause) {
  const forward_call& call = *owed.call;
  const auto& [what, gradient_slots] = step_again(owed);
  grad_result result = empty_gradients();
  std::vector<binding> given;
  bool has_host_input = false;
  for (const saved_input& one : call.inputs) {
    given.push_back(one.now());
    has_host_input = has_host_input || one.bound.on_host;
  }
  const int first = static_cast<int>(parts_->op.declared.inputs().size());
  for (std::size_t slot = 0; slot < owed.cotangents.size(); ++slot) {
    if ((owed.given >> slot & 1) == 0) continue;
    given.push_back(
        bind_input(what.declared(), first + static_cast<int>(slot), owed.cotangents[slot]));
  }
  if (owed.is_apart) refuse_host_values(has_host_input);
  std::optional<buffer<std::int32_t>> own_zero;
  if (owed.is_apart) {
    own_zero.emplace(owed.here->results(), 1, at.stream, at.place);
    fill(at, write{*own_zero}, 0);
  }
  const std::vector<block> sums =
      make_sums(at, owed, running_, own_zero ? own_zero->all() : owed.here->zero(at));
  running_.in_force = owed.in_force;
  again_forward_ = call.in_force;
  state_aside aside{true, parts_->op.declared, owed.here->results(), at};
  draws_ = call.drawn_from;

  const auto take = [&](std::span<const tensor_ref> made) {
    make_gradients(at, owed, result);
    copy_gradients(at, result, gradient_slots, made);
  };
  tell_once(cause, {});
  if (owed.is_apart) {
    const body_apart run{at, what, given, owed.here->results()};
    take(run.outputs());
  } else {
    const step_result run = owed.here->eager().run(at, what, given, {}, why_eager(cause));
    take(run.table->outputs());
    result.replay = run.replay;
  }
  aside.put_back();
  if (REPRISE_MUTANT(recompute_advances_the_generator)) moved_on();
  put_sums(at, owed, running_, sums);
  running_ = {};
  result.how = ran::eager;
  result.why = why_eager(cause);
  ++counts_.eager_backward[static_cast<std::size_t>(cause)];
  return result;
}

// Memory ran out: the frame, and what shares its pool, goes; ops outside of the pool replay on.
void graphed_core::release_pool(frame& of, std::source_location place) {
  landmark("graphed op: gave back a pool");
  const std::shared_ptr<frame_memory> memory = of.memory;
  of.in->drain(place);
  for (const std::shared_ptr<frame>& one : memory->frames()) {
    one->state = frame_state::released;
    one->owner = ticket_id::none;
    one->backward.reset();
    one->forward.reset();
    one->kept = {};
    one->running = {};
    one->share.give_back();
  }
  memory->drop_all();
  of.in->forget(*memory);
}

}  // namespace reprise
