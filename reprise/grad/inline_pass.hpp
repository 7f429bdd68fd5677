// inline_pass: differentiable ops inside of a step's body, first their forwards and then their
// backwards, so that a loss with its gradient, or a whole training step, is one recording.
//
//   signature declared{"step"};
//   const input<float> images = declared.in<float>("images", {any, 784});
//   include_op(declared, trunk, "trunk");                    // an erased_op; and so each of them
//   key_by_precision(declared);
//   step{declared, [=](step_scope& run) {
//     inline_pass ops{run, declared, deliver};
//     const auto y = ops.forward(trunk, {ops.given(images)});             // number 0
//     …
//     ops.backward(0, trunk, {dy}, 0);
//   }}
//
// It runs the bodies that a graphed_op runs, in the precision in force on the thread, and so gives
// their bits. Tensors are named by slot of the op's own signature. What forwards make and save
// lasts until the step's next replay, what backwards form until the end of the body, unless it is
// an output of the step. Only valid inside the body; the step is the owner of its state, random
// numbers and facts, which include_op declares.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "reprise/grad/graphed_op.hpp"
#include "reprise/grad/precision.hpp"
#include "reprise/grad/scopes.hpp"
#include "reprise/replay/step.hpp"

namespace reprise {

// Takes over what an op declares but for its inputs and outputs (signature::include), each name
// behind "PREFIX."; and declares the gradient buffers of what it trains as state of the step, their
// addresses as facts: while one lies elsewhere the step runs eagerly. Throws usage_error where two
// ops draw from two counters.
void include_op(signature& in, const erased_op& op, const std::string& prefix);

class inline_pass {
 public:
  // Where the gradient of a parameter goes in this run, asked once for each op that trains it, in
  // the order of the backwards. The word of its rule lies in device memory that replays do not
  // move; a parameter that two ops train gets `add` the second time. A replay asks nobody: that a
  // parameter has a gradient then (parameter::has_grad) is the step's caller to say.
  using deliverer = std::function<delivery(const parameter& trained)>;

  // `run` and `of`, which is the step's signature, outlive it. Without `to`, no op may deliver.
  inline_pass(step_scope& run, const signature& of, deliverer to = {});

  // An input of the step, for an op to read; a direct one is brought into the step's memory first.
  // Throws usage_error when the call left it out.
  template <element T>
  tensor_ref given(const input<T>& in) {
    return given(in.slot(), in.of());
  }
  tensor_ref given(int slot, signature_id of);

  // Runs the forward of an op on these inputs, by slot; one without data is left out. `into` says,
  // by slot, which output of the step it makes; -1, or none: it is kept. Returns its outputs, by
  // slot. Forwards are numbered from 0 in the order they run.
  std::vector<tensor_ref> forward(const erased_op& op, std::span<const tensor_ref> inputs,
                                  std::span<const int> into = {});
  std::vector<tensor_ref> forward(const erased_op& op, std::initializer_list<tensor_ref> inputs,
                                  std::initializer_list<int> into = {}) {
    return forward(op, std::span{inputs.begin(), inputs.size()},
                   std::span{into.begin(), into.size()});
  }
  // Runs the backward of the op of forward `which`, with cotangents of its outputs, by slot; one
  // without data counts as zero. `wants`: bit i asks for the gradient of input i. `into` says, by
  // input slot, which output of the step that gradient is; -1, or none: it lasts until the end of
  // the body. Returns the gradients that are wanted, by input slot.
  //
  // Throws usage_error for a number that no forward has, or one of another op, for the second
  // backward of one forward, and for a gradient that is wanted and not formed.
  std::vector<tensor_ref> backward(std::size_t which, const erased_op& op,
                                   std::span<const tensor_ref> cotangents, std::uint64_t wants,
                                   std::span<const int> into = {});
  std::vector<tensor_ref> backward(std::size_t which, const erased_op& op,
                                   std::initializer_list<tensor_ref> cotangents,
                                   std::uint64_t wants, std::initializer_list<int> into = {}) {
    return backward(which, op, std::span{cotangents.begin(), cotangents.size()}, wants,
                    std::span{into.begin(), into.size()});
  }

  // How many forwards have run.
  std::size_t size() const { return ran_.size(); }

 private:
  step_scope& run_;
  const signature& declared_;
  deliverer to_;
  precision in_force_;
  saved_tensors saves_;
  struct forward_of {
    signature_id op;
    bool has_run_back = false;
  };
  std::vector<forward_of> ran_;
};

}  // namespace reprise
