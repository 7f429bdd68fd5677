// What a call of the backward asks for, checked; and whether what its forward saved is as it was.
#include "reprise/grad/owed_backward.hpp"

#include <fmt/format.h>

#include <string_view>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"

namespace reprise {

void graphed_core::check_ticket(const forward_ticket& ticket) const {
  if (!ticket) {
    throw usage_error{
        fmt::format("op '{}': the backward has no ticket; give that of its forward", name())};
  }
  if (ticket.call()->op == parts_) return;
  throw usage_error{fmt::format(
      "op '{}': the ticket is of another op's forward; give it to the op that issued it", name())};
}

// The ticket was checked.
graphed_core::owed_backward graphed_core::owed_by(site at, const forward_ticket& ticket,
                                                  operands cotangents, const wanted& what) const {
  const signature& declared = parts_->op.declared;
  const auto refuse = [&](std::string_view text) {
    throw usage_error{fmt::format("op '{}': {}", name(), text)};
  };
  owed_backward owed;
  owed.call = ticket.call();
  owed.cotangents.resize(declared.outputs().size());
  for (const operand& one : cotangents) {
    const binding b = one.now();
    if (!b.is_output || b.of != declared.id()) {
      refuse("a cotangent is bound to no output of this op; bind it with gradient_of");
    }
    const auto slot = static_cast<std::size_t>(b.slot);
    const declared_output& output = declared.outputs()[slot];
    const dims& shape = owed.call->outputs[slot];
    if ((owed.given >> slot & 1) != 0) {
      refuse(fmt::format("the cotangent of '{}' is given twice; give their sum", output.name));
    }
    if (b.to.type != output.type || b.to.shape.count() != shape.count()) {
      refuse(
          fmt::format("the cotangent of '{}' has {} elements of {} and the output {} of {}; "
                      "give as many as the forward made",
                      output.name, b.to.shape.count(), name_of(b.to.type), shape.count(),
                      name_of(output.type)));
    }
    if (b.to.data == nullptr && b.to.bytes() != 0) {
      refuse(fmt::format("the cotangent of '{}' lies nowhere; give its elements", output.name));
    }
    owed.cotangents[slot] = {b.to.data, b.to.type, shape, contiguous_strides(shape)};
    owed.given |= std::uint64_t{1} << slot;
    if (one.held) one.held->read_on(at.stream);
  }
  if (owed.given == 0) {
    refuse("the backward has no cotangent; give that of one output with gradient_of");
  }
  std::uint64_t were_given = 0;
  for (const saved_input& one : owed.call->inputs) {
    were_given |= std::uint64_t{1} << one.bound.slot;
  }
  if (what.of != signature_id::none && what.of != declared.id()) {
    refuse("the gradients wanted are of another op's inputs; use the handles of this op");
  }
  owed.wanted = what.inputs & parts_->differentiable & were_given;
  owed.parameters = what.parameters;
  owed.in_force = {precision_now().products, owed.call->in_force.casts};
  return owed;
}

void graphed_core::require_unchanged(const forward_call& call) const {
  if (REPRISE_MUTANT(changed_operands_are_not_seen)) return;
  const signature& declared = parts_->op.declared;
  const auto refuse = [&](std::string_view kind, std::string_view which,
                          std::string_view how = "in place ") {
    throw stale_error{
        fmt::format("op '{}': {} '{}' was changed {}since the forward that saved it; run the "
                    "backward before the change, or the forward again",
                    name(), kind, which, how)};
  };
  for (std::size_t i = 0; i < call.parameters.size(); ++i) {
    if (call.parameters[i].moved()) refuse("parameter", declared.uses()[i].name);
  }
  for (const saved_input& one : call.inputs) {
    if (!one.version.moved()) continue;
    refuse("input", declared.inputs()[static_cast<std::size_t>(one.bound.slot)].name);
  }
  const std::size_t facts = declared.facts().size();
  for (std::size_t i = 0; i < call.words.size(); ++i) {
    const bool is_fact = i < facts;
    const declared_word& word =
        is_fact ? declared.fact_words()[i] : declared.key_words()[i - facts];
    if (word.now() == call.words[i]) continue;
    refuse(is_fact ? "fact" : "key",
           is_fact ? declared.facts()[i].name : declared.keys()[i - facts], "");
  }
}

}  // namespace reprise
