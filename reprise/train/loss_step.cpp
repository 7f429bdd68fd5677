#include "reprise/train/loss_step.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "reprise/base/error.hpp"
#include "reprise/grad/inline_pass.hpp"
#include "reprise/kernel/launch.hpp"
#include "reprise/ops/add.hpp"
#include "reprise/ops/multiply_by.hpp"
#include "reprise/train/loss_workspace.hpp"

namespace reprise {

namespace {

constexpr dims one_element{1};

// Of one op's tensors, all but this one empty.
std::vector<int> only(std::size_t count, int slot, int value) {
  std::vector<int> all(count, -1);
  all[static_cast<std::size_t>(slot)] = value;
  return all;
}

view<float> floats_in(const tensor_ref& one) {
  return elements_of<float>(one);
}

}  // namespace

loss_step::loss_step(const std::string& name, std::span<const loss_term> terms,
                     bool forms_gradients)
    : terms_{terms}, declared_{name} {
  if (forms_gradients) {
    scale_ = declared_.add_input({"scale", dtype::f32, one_element, input_mode::direct, false});
  }
  total_ = declared_.add_output({"loss", dtype::f32, on_overwrite::move_aside});
  for (const loss_term& term : terms) {
    const loss_op& op = term.op;
    include_op(declared_, op.op, term.name);
    if (term.workspace != nullptr && term.workspace->bytes() != 0) {
      declared_.overwrites("workspace of " + term.name, term.workspace->all());
    }
    term_slots slots{};
    slots.predictions = declared_.add_input({"predictions of " + term.name, dtype::f32,
                                             op.predictions().pattern, input_mode::direct, true});
    slots.targets = declared_.add_input({"targets of " + term.name, op.targets().type,
                                         op.targets().pattern, input_mode::direct, true});
    slots.loss =
        declared_.add_output({"loss of " + term.name, dtype::f32, on_overwrite::move_aside});
    if (forms_gradients) {
      slots.gradient =
          declared_.add_output({"gradient of " + term.name, dtype::f32, on_overwrite::move_aside});
    }
    slots_.push_back(slots);
  }
  key_by_precision(declared_);
  what_ = std::make_unique<step>(declared_, [this](step_scope& in) { run(in); });
}

std::vector<binding> loss_step::bind(site at, std::span<const tensor<float>> predictions,
                                     std::span<const operand> targets,
                                     view<const float> scale) const {
  const auto refuse = [&](std::string_view why) {
    throw usage_error{fmt::format("loss '{}': {}", declared_.name(), why)};
  };
  if (predictions.size() != terms_.size() || targets.size() != terms_.size()) {
    refuse(
        fmt::format("{} predictions and {} targets are given for {} terms; give one of each for "
                    "a term, empty where it is left out",
                    predictions.size(), targets.size(), terms_.size()));
  }
  std::vector<binding> given;
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    if (!predictions[i]) continue;
    const loss_op& op = terms_[i].op;
    binding to = targets[i].now();
    if (to.of != op.op.declared.id() || to.slot != op.targets_slot || to.is_output) {
      refuse(
          fmt::format("the targets of term '{}' are not bound to its op's targets; bind them "
                      "with graphed_loss::targets",
                      terms_[i].name));
    }
    predictions[i].held()->read_on(at.stream);
    if (targets[i].held) targets[i].held->read_on(at.stream);
    given.push_back(
        {declared_.id(), slots_[i].predictions, predictions[i].held()->now(), false, false});
    to.of = declared_.id();
    to.slot = slots_[i].targets;
    given.push_back(to);
  }
  if (given.empty()) refuse("no term has predictions; give those of one at least");
  if (scale_ >= 0) {
    const view<float> unconst{const_cast<float*>(scale.data()), scale.size()};  // only ever read
    if (scale.size() != 1) {
      refuse(fmt::format("the scale has {} elements; give one", scale.size()));
    }
    given.push_back({declared_.id(), scale_, as_tensor(unconst, one_element), false, false});
  }
  declared_.check(given);
  return given;
}

bool loss_step::is_given(const step_scope& run, std::size_t term) const {
  return (run.inputs().given >> slots_[term].predictions & 1) != 0;
}

void loss_step::run(step_scope& run) const {
  inline_pass ops{run, declared_};
  const view<const float> scale =
      scale_ < 0 ? view<const float>{} : floats_in(ops.given(scale_, declared_.id()));
  const view<float> total = floats_in(run.make_output(total_, declared_.id(), one_element));
  bool is_first = true;
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    const loss_term& term = terms_[i];
    if (!is_given(run, i)) {
      run.make_output(slots_[i].loss, declared_.id(), {0});
      if (slots_[i].gradient >= 0) run.make_output(slots_[i].gradient, declared_.id(), {0});
      continue;
    }
    const signature& op = term.op.op.declared;
    std::vector<tensor_ref> inputs(op.inputs().size());
    inputs[static_cast<std::size_t>(term.op.predictions_slot)] =
        ops.given(slots_[i].predictions, declared_.id());
    inputs[static_cast<std::size_t>(term.op.targets_slot)] =
        ops.given(slots_[i].targets, declared_.id());
    const std::vector<int> into = only(op.outputs().size(), term.op.loss_slot, slots_[i].loss);
    const std::vector<tensor_ref> made = ops.forward(term.op.op, inputs, into);
    const view<float> loss = floats_in(made[static_cast<std::size_t>(term.op.loss_slot)]);
    if (loss.size() != 1) {
      throw usage_error{fmt::format("loss '{}': term '{}' makes {} elements as its loss; make one",
                                    declared_.name(), term.name, loss.size())};
    }
    if (slots_[i].gradient >= 0) run_backward(run, ops, i, scale);
    // In the order of the terms, each product and sum rounded once.
    const view<float> weighted = is_first ? total : run.scratch<float>(one_element);
    launch(run, multiply_by, read<float>{loss}, write<float>{weighted}, term.weight);
    if (!is_first) {
      launch(run, add, read<float>{total}, read<float>{weighted}, write<float>{total});
    }
    is_first = false;
  }
}

// Of the forward that ran last.
void loss_step::run_backward(step_scope& run, inline_pass& ops, std::size_t term,
                             view<const float> scale) const {
  const loss_op& op = terms_[term].op;
  const view<float> dloss = run.scratch<float>(one_element);
  launch(run, multiply_by, read<float>{scale}, write<float>{dloss}, terms_[term].weight);
  std::vector<tensor_ref> cotangents(op.op.declared.outputs().size());
  cotangents[static_cast<std::size_t>(op.loss_slot)] = as_tensor(dloss, one_element);
  const std::vector<int> into =
      only(op.op.declared.inputs().size(), op.predictions_slot, slots_[term].gradient);
  ops.backward(ops.size() - 1, op.op, cotangents, std::uint64_t{1} << op.predictions_slot, into);
}

}  // namespace reprise
