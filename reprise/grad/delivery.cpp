// The steps of a backward, and where its gradients go: to parameters by the rule of the call, to
// the caller as tensors.
#include <fmt/format.h>

#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/device/enqueue.hpp"
#include "reprise/grad/owed_backward.hpp"
#include "reprise/kernel/launch.hpp"
#include "reprise/ops/put_gradient.hpp"

namespace reprise {

namespace {

view<float> elements(const block& memory, const parameter& of) {
  return {reinterpret_cast<float*>(memory.data()), of.grad.shape.count()};
}

// Where a recording delivers: to the parameters, by the words that each replay brings.
std::vector<delivery> by_words(const std::vector<parameter*>& trained, const tensor_ref& words) {
  std::vector<delivery> all;
  for (std::size_t i = 0; i < trained.size(); ++i) {
    const view<const std::int32_t> rules{reinterpret_cast<const std::int32_t*>(words.data),
                                         trained.size()};
    all.push_back({elements_of<float>(trained[i]->grad), rules.subview(i, 1)});
  }
  return all;
}

}  // namespace

// Over the memory of one frame.
backward_part graphed_core::backward_over(frame& in, const owed_backward& owed) const {
  const signature& declared = parts_->op.declared;
  const bool moves =
      options_.returned == gradients::moved && !REPRISE_MUTANT(live_gradients_are_not_moved);
  signature sig{name() + " backward"};
  for (std::size_t slot = 0; slot < declared.outputs().size(); ++slot) {
    const declared_output& output = declared.outputs()[slot];
    sig.add_input({"cotangent of " + output.name, output.type, owed.call->outputs[slot],
                   input_mode::direct, true});
  }
  const auto words = static_cast<std::size_t>(declared.outputs().size());
  if (!parts_->trained.empty()) {
    sig.add_input({"gradient rules", dtype::i32,
                   dims{static_cast<std::int64_t>(parts_->trained.size())}, input_mode::staged,
                   false});
  }
  for (const declared_use& use : declared.uses()) {
    if (use.trained != nullptr) {
      sig.trains(use.name, *use.trained);
      sig.fact("gradient buffer of " + use.name, [to = use.trained] {
        return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(to->grad.data));
      });
    } else {
      sig.uses(use.name, *use.weight);
    }
  }
  backward_part part;
  part.wanted = owed.wanted;
  for (std::size_t i = 0; i < declared.inputs().size(); ++i) {
    part.gradient_slots.push_back(
        (owed.wanted >> i & 1) == 0
            ? -1
            : sig.add_output({"gradient of " + declared.inputs()[i].name, declared.inputs()[i].type,
                              moves ? on_overwrite::move_aside : on_overwrite::revoke}));
  }
  // What is lent stays where it is; the rest a replay leaves where it is told to.
  if (!moves && owed.wanted != 0) {
    part.places = sig.add_input({"places of gradients", dtype::u64,
                                 dims{static_cast<std::int64_t>(declared.inputs().size())},
                                 input_mode::staged, true});
  }
  const signature_id id = sig.id();
  part.what.emplace(std::move(sig), [parts = parts_, raw = &in, slots = part.gradient_slots, words,
                                     places = part.places, id](step_scope& run) {
    const run_inputs& inputs = run.inputs();
    std::vector<tensor_ref> cotangents(words);
    for (std::size_t slot = 0; slot < words; ++slot) {
      if ((inputs.given >> slot & 1) == 0) continue;
      // Also where it could be read as it lies: the capture takes what this run took.
      cotangents[slot] = bring_input(run, inputs.by_slot[slot], (inputs.direct >> slot & 1) != 0);
    }
    std::vector<delivery> own;
    if (raw->running.sums.empty() && !parts->trained.empty()) {
      own = by_words(parts->trained, inputs.by_slot[words]);
    }
    std::vector<tensor_ref> formed;
    const backward_scope::plan plan{parts->op.declared,
                                    raw->saves,
                                    cotangents,
                                    slots,
                                    id,
                                    own.empty() ? raw->running.sums : own,
                                    raw->running.in_force,
                                    raw->running.delivered,
                                    formed};
    backward_scope scope{run, plan};
    parts->op.backward(scope);
    if (places < 0 || (inputs.given >> places & 1) == 0) return;  // an eager run copies them
    const tensor_ref& there = inputs.by_slot[static_cast<std::size_t>(places)];
    for (std::size_t i = 0; i < formed.size(); ++i) {
      if (formed[i].data == nullptr) continue;
      hand_out(run, formed[i], there.data + i * sizeof(std::uint64_t));
    }
  });
  return part;
}

// The forward and then the backward, in the memory of one eager run.
const graphed_core::forward_again& graphed_core::step_again(const owed_backward& owed) {
  if (const auto there = again_.find(owed.wanted); there != again_.end()) return there->second;
  const signature& declared = parts_->op.declared;
  signature sig = parts_->forward.variant(name() + " again");
  const std::size_t first = declared.inputs().size();
  for (const declared_output& output : declared.outputs()) {
    sig.add_input({"cotangent of " + output.name, output.type, {}, input_mode::direct, true});
  }
  std::vector<int> slots;
  for (std::size_t i = 0; i < first; ++i) {
    slots.push_back((owed.wanted >> i & 1) == 0
                        ? -1
                        : sig.add_output({"gradient of " + declared.inputs()[i].name,
                                          declared.inputs()[i].type, on_overwrite::revoke}));
  }
  const signature_id id = sig.id();
  step what{
      std::move(sig), [this, slots, first, id](step_scope& run) {
        saved_tensors saves;
        parts_->run_forward(run, saves, again_forward_);
        const run_inputs& inputs = run.inputs();
        std::vector<tensor_ref> cotangents(
            inputs.by_slot.begin() + static_cast<std::ptrdiff_t>(first), inputs.by_slot.end());
        std::vector<tensor_ref> formed;  // copied when the run is done
        const backward_scope::plan plan{
            parts_->op.declared, saves, cotangents, slots, id, running_.sums, running_.in_force,
            running_.delivered,  formed};
        backward_scope scope{run, plan};
        parts_->op.backward(scope);
      }};
  return again_.emplace(owed.wanted, forward_again{std::move(what), slots}).first->second;
}

std::vector<binding> graphed_core::bind_backward(const backward_part& part,
                                                 const owed_backward& owed,
                                                 std::span<const std::int32_t> rules,
                                                 std::vector<std::uint64_t>* places) const {
  const step& what = *part.what;
  std::vector<binding> given;
  if (places != nullptr) {
    places->assign(parts_->op.declared.inputs().size(), 0);
    bind_places(what.declared(), part.places, *places, given);
  }
  for (std::size_t slot = 0; slot < owed.cotangents.size(); ++slot) {
    if ((owed.given >> slot & 1) == 0) continue;
    given.push_back(bind_input(what.declared(), static_cast<int>(slot), owed.cotangents[slot]));
  }
  if (rules.empty()) return given;
  const dims shape{static_cast<std::int64_t>(rules.size())};
  auto* const words = reinterpret_cast<std::byte*>(const_cast<std::int32_t*>(rules.data()));
  given.push_back({what.declared().id(),
                   static_cast<int>(owed.cotangents.size()),
                   {words, dtype::i32, shape, contiguous_strides(shape)},
                   true,
                   false});
  return given;
}

std::vector<std::int32_t> graphed_core::rules_for(const owed_backward& owed) const {
  std::vector<std::int32_t> rules;
  for (std::size_t i = 0; i < parts_->trained.size(); ++i) {
    const bool has_grad = parts_->trained[i]->has_grad;
    gradient_rule rule = has_grad ? gradient_rule::add : gradient_rule::write;
    if (REPRISE_MUTANT(gradients_are_written_over)) rule = gradient_rule::write;
    // What a backward that failed has delivered, unless it was dropped since.
    const bool is_there = has_grad && owed.call->delivered[i];
    if (!owed.parameters || is_there) rule = gradient_rule::leave;
    rules.push_back(static_cast<std::int32_t>(rule));
  }
  return rules;
}

// Memory in which an eager run forms the gradients of parameters; nothing is added to them before
// all of it has run.
std::vector<block> graphed_core::make_sums(site at, const owed_backward& owed, backward_run& run,
                                           view<const std::int32_t> zero) const {
  std::vector<block> sums;
  run = {};
  for (const parameter* one : parts_->trained) {
    sums.emplace_back(owed.here->results(), one->grad.bytes(), at.stream, at.place);
    run.sums.push_back({elements(sums.back(), *one), zero});
  }
  return sums;
}

// One by one; a backward that fails on the way and is called again leaves out those that are there.
void graphed_core::put_sums(site at, owed_backward& owed, const backward_run& run,
                            const std::vector<block>& sums) {
  const std::vector<std::int32_t> rules = rules_for(owed);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const auto rule = static_cast<gradient_rule>(rules[i]);
    if (!run.delivered[i] || rule == gradient_rule::leave) continue;
    parameter& to = *parts_->trained[i];
    launch(at, put_gradient, read<float>{elements(sums[i], to)},
           inout<float>{elements_of<float>(to.grad)}, rule);
    note_delivered(owed, parameter_bits{}.set(i), false);
  }
  owed.call->delivered.reset();
}

// `is_whole`: the backward is done with it; else it may be called again for the rest.
void graphed_core::note_delivered(owed_backward& owed, parameter_bits delivers,
                                  bool is_whole) const {
  if (!owed.parameters) return;
  for (std::size_t i = 0; i < parts_->trained.size(); ++i) {
    if (delivers[i]) parts_->trained[i]->has_grad = true;
  }
  if (REPRISE_MUTANT(failed_backward_forgets_what_it_delivered)) delivers.reset();
  owed.call->delivered = is_whole ? parameter_bits{} : owed.call->delivered | delivers;
}

grad_result graphed_core::empty_gradients() const {
  grad_result result;
  result.of = parts_->op.declared.id();
  result.gradients.resize(parts_->op.declared.inputs().size());
  return result;
}

void graphed_core::make_gradients(site at, const owed_backward& owed, grad_result& result) const {
  for (const saved_input& one : owed.call->inputs) {
    const auto i = static_cast<std::size_t>(one.bound.slot);
    if ((owed.wanted >> i & 1) == 0) continue;
    result.gradients[i] = hold_memory(owed.here->results(), one.bound.to.type, one.bound.to.shape,
                                      at.stream, at.place);
  }
}

void graphed_core::copy_gradients(site at, const grad_result& result, std::span<const int> slots,
                                  std::span<const tensor_ref> made) const {
  for (std::size_t i = 0; i < result.gradients.size(); ++i) {
    if (!result.gradients[i]) continue;
    const tensor_ref& from = made[static_cast<std::size_t>(slots[i])];
    copy_bytes(at, from.data, result.gradients[i]->at.data, from.bytes());
  }
}

// Where the backward has left them, until its next run moves them.
void graphed_core::lend_gradients(const owed_backward& owed, const backward_part& part,
                                  const step_result& run, grad_result& result) const {
  for (std::size_t i = 0; i < result.gradients.size(); ++i) {
    if ((owed.wanted >> i & 1) == 0) continue;
    const auto slot = static_cast<std::size_t>(part.gradient_slots[i]);
    auto held = std::make_shared<held_tensor>();
    held->at = run.table->outputs()[slot];
    held->where = [table = run.table, id = run.replay, slot,
                   hold = run.table->hold(run.replay, slot, "a gradient")] {
      return table->leased(id, slot, hold.get());
    };
    result.gradients[i] = std::move(held);
  }
}

}  // namespace reprise
