// A differentiable op as the runtime holds it: its bodies, and the signatures of the steps that are
// made of them. Shared by the op, its frames and the calls that still owe a backward. For this
// room's .cpp files.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "reprise/grad/graphed_op.hpp"
#include "reprise/grad/scopes.hpp"
#include "reprise/replay/step.hpp"

namespace reprise {

// Who takes the gradients of inputs of an op inside of another, by its input slot, and those of
// parameters.
using inner_maker = std::function<tensor_ref(int slot, const dims& shape)>;
using inner_delivery = std::function<delivery(const parameter& trained)>;

// How one backward finds what it needs, and what it has delivered.
struct backward_scope::plan {
  const signature& declared;  // of the op
  const saved_tensors& saves;
  std::span<const tensor_ref> cotangents;  // by output slot; no data: none was given
  std::span<const int> gradient_slots;     // by input slot: the step's output; -1: not wanted
  signature_id step = signature_id::none;
  std::span<const delivery> parameters;  // by what the signature trains
  precision in_force;
  parameter_bits& delivered;
  std::vector<tensor_ref>& formed;  // gradients, by input slot

  // Of an op inside of another: who takes its gradients of inputs and of parameters. Null: they are
  // the step's, and `parameters`.
  const inner_maker* make = nullptr;
  const inner_delivery* deliver = nullptr;
};

// The backward of an op inside of another body: what its forward saved, and who takes what it
// forms.
struct inner_backward {
  const erased_op& op;
  const saved_tensors& saves;
  std::span<const tensor_ref> cotangents;  // by output slot; no data: it counts as zero
  std::uint64_t wants = 0;                 // bit i: the gradient of input i
  precision in_force;
  const inner_maker& make;
  const inner_delivery& deliver;
};
// Returns the gradients that are wanted, by input slot. Throws usage_error when one is not formed.
std::vector<tensor_ref> run_inner(step_scope& run, const inner_backward& what);

// Memory until the end of the body, as a tensor.
tensor_ref scratch_tensor(step_scope& run, dtype type, const dims& shape);

// What a backward body that runs now is given, and what it has delivered. Set before each run; a
// recording's own is empty, and delivers to the parameters by the words that a replay brings.
struct backward_run {
  std::vector<delivery> sums;  // by parameter
  precision in_force;
  parameter_bits delivered;
};

struct op_parts {
  op_parts(erased_op of, philox_counter& draws);

  // Runs the forward body. Inputs that are staged by the op's signature and come behind words are
  // brought first.
  void run_forward(step_scope& run, saved_tensors& saves, const precision& in_force) const;
  // Behind it, in a run of the signature `recorded`: leaves its outputs where their words say.
  void hand_out_outputs(step_scope& run, const saved_tensors& saves) const;

  // Of the inputs whose gradient can be asked for.
  std::uint64_t differentiable = 0;
  std::vector<parameter*> trained;

  erased_op op;
  std::string work;     // of the forward's steps: the same for ops that share frames
  bool shares = false;  // frames with other ops, in regions
  // The forward, with all inputs direct, and precision as part of the key. Its numbers are drawn
  // from the counter that the op sets before each run.
  signature forward;
  // The same as frames record it: it takes one word more for each output, where a replay is to
  // leave it. A null word, also for a state, is nowhere: it stays in the frame.
  signature recorded;
  int places = -1;  // the input slot of those words; -1: there are no outputs
};

// Leaves `made` where a word of device memory says, as a node of the recording.
void hand_out(step_scope& run, const tensor_ref& made, const std::byte* word);
// Those words, in host memory, as an operand; for a slot of -1 nothing.
void bind_places(const signature& of, int slot, std::vector<std::uint64_t>& words,
                 std::vector<binding>& given);

// Brings an input into memory that lasts, from where it lies or from behind its word.
tensor_ref bring_input(step_scope& run, const tensor_ref& at, bool is_direct);

// An input that lies in `ref`, bound by hand.
binding bind_input(const signature& of, int slot, const tensor_ref& ref);

}  // namespace reprise
