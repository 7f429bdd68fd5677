// A differentiable op whose forward and backward are replayed.
//
// The op is a value with a signature and two bodies (the concept below). The first forward that may
// need a backward is recorded in a frame, static memory that holds what its backward needs; the
// first backward is recorded behind it. From then on a forward or a backward costs one launch, and
// gives the bits that eager runs give: outputs, gradients, state and random numbers. What happens
// when a second forward comes while a backward is owed is the op's policy (options.hpp).
//
//   graphed_op layer{dense{w}, budget, {.conflict = slots{3}}};
//   auto call = layer.forward(s, {layer.op().x(images)});
//   auto grads = layer.backward(s, call.ticket, {gradient_of(layer.op().y, dy)});
//
// Calls may come from any thread and any stream: those of one pool (a device and a stream) take
// turns, others run in parallel. The op outlives no device. Gradients of gradients are refused:
// what a backward returns has no ticket.
#pragma once

#include <concepts>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include "reprise/grad/counts.hpp"
#include "reprise/grad/options.hpp"
#include "reprise/grad/replayed_state.hpp"
#include "reprise/grad/scopes.hpp"
#include "reprise/grad/tensor.hpp"
#include "reprise/grad/ticket.hpp"
#include "reprise/replay/budget.hpp"
#include "reprise/replay/outcome.hpp"

namespace reprise {

class graphed_core;  // graphed_core.hpp

// A shape, not a base class. The op is copied into the graphed_op; what it refers to outlives it.
// An op whose signature declares state also says `static constexpr bool outputs_ignore_state =
// true`: its outputs and what it saves do not depend on that state, which is put back when the
// forward is run again for a backward. Another op with state is refused.
template <class Op>
concept differentiable = requires(const Op& op, forward_scope& f, backward_scope& b) {
  { op.describe() } -> std::convertible_to<const signature&>;
  op.forward(f);
  op.backward(b);
};

// An op by its parts.
struct erased_op {
  signature declared;
  std::function<void(forward_scope&)> forward;
  std::function<void(backward_scope&)> backward;
  bool outputs_ignore_state = false;
};

template <differentiable Op>
erased_op erase(std::shared_ptr<const Op> op) {
  bool ignores = false;
  if constexpr (requires { Op::outputs_ignore_state; }) ignores = Op::outputs_ignore_state;
  return {op->describe(), [op](forward_scope& run) { op->forward(run); },
          [op](backward_scope& run) { op->backward(run); }, ignores};
}

struct forward_result : outcome {
  forward_ticket ticket;  // empty where no backward was wanted
  signature_id of = signature_id::none;
  std::vector<std::shared_ptr<held_tensor>> outputs;  // by slot

  // Throws usage_error when the output is of another op.
  template <element T>
  tensor<T> operator[](const output<T>& out) const {
    return tensor<T>{output_at(out.slot(), out.of())};
  }
  // An output that is a state (docs/training.md): copied when it is first read.
  template <element T>
  replayed_state<T> state(const output<T>& out) const {
    return replayed_state<T>{state_at(out.slot(), out.of())};
  }

  std::vector<std::shared_ptr<state_source>> states;  // by slot; null: an output
 private:
  const std::shared_ptr<held_tensor>& output_at(int slot, signature_id asked) const;
  const std::shared_ptr<state_source>& state_at(int slot, signature_id asked) const;
};

struct grad_result : outcome {
  signature_id of = signature_id::none;
  std::vector<std::shared_ptr<held_tensor>> gradients;  // by input slot; null: not wanted

  // Throws usage_error when it was not asked for, or the input is another op's.
  template <element T>
  tensor<T> operator[](const input<T>& in) const {
    return tensor<T>{gradient_at(in.slot(), in.of())};
  }

 private:
  const std::shared_ptr<held_tensor>& gradient_at(int slot, signature_id asked) const;
};

// Which gradients a backward forms. Inputs that cannot have one (integers, and those left out) are
// never formed. Parameters are those that the signature trains.
struct wanted {
  std::uint64_t inputs = ~std::uint64_t{0};  // bit i: input i
  bool parameters = true;
  signature_id of = signature_id::none;  // whose inputs; none: of whichever op is asked

  template <element T, element... More>
  static wanted only(const input<T>& first, const input<More>&... more) {
    const bool one_op = ((first.of() == more.of()) && ...);
    return {((std::uint64_t{1} << first.slot()) | ... | (std::uint64_t{1} << more.slot())), true,
            one_op ? first.of() : signature_id{~std::uint64_t{0}}};
  }
  static wanted parameters_only() { return {0, true}; }
};

// What a call is made with; the template below adds the op's type.
class graphed {
 public:
  // Throws usage_error for an op with state that does not say outputs_ignore_state. The budget
  // outlives the op.
  graphed(erased_op op, byte_budget& budget, graphed_options options = {});
  ~graphed();
  graphed(graphed&&) noexcept;
  graphed& operator=(graphed&&) noexcept;
  // A fresh one of the same name and options: no frames, counts of its own.
  graphed(const graphed& other);
  graphed& operator=(const graphed&) = delete;

  // Runs the forward, in stream order. Outputs bound with `into` lie in the caller's memory.
  // Throws usage_error when the operands do not fit, and what the body throws when it runs eagerly.
  // Whatever it throws, no frame is owned by a half-written state.
  forward_result forward(site at, operands given);
  // A forward that cannot need a backward: leaves frames and their owners alone. Eager, or by a
  // recording of its own, which no backward reads.
  forward_result infer(site at, operands given);

  // Forms the gradients of one forward, in stream order: those of inputs are returned, those of
  // parameters are written or added to parameter::grad. A second backward of one forward is exact:
  // its forward runs again. Throws usage_error for a ticket of another op, and when no cotangent is
  // given; stale_error when an operand or a parameter of the forward was changed in place since, or
  // a fact or a key part of the signature has another value than it had then.
  grad_result backward(site at, const forward_ticket& ticket, operands cotangents,
                       const wanted& what = {});

  // For all ops of the process, between steps: frames and failures are forgotten, counts and what
  // was told once stay; the next call captures again. Pending backwards keep their frames.
  static void reset();

  // No backward is owed for this forward any more, as where a step gave up behind it: a frame that
  // it holds is free. One that comes all the same is exact, and may run its forward again for that.
  // Throws usage_error for a ticket of another op.
  void forget(const forward_ticket& ticket);
  // With gradients::moved: those that were lent and are alive are moved to memory of their own now,
  // in the order of `at`, and not only when the next backward comes. Nothing in a capture.
  void move_live_gradients(site at);
  // The host waits for the last replays of its recordings; without one it calls no device. All are
  // tried, and the first failure is thrown.
  void drain(std::source_location place = std::source_location::current());

  // Tells the observer of each mark that a forward or an inference passes, once a call and on its
  // thread: while there is one, they run eagerly (eager_cause::observed). A forward that runs again
  // for its backward tells nobody. `stop_observing` takes all of this op off; `observe_all` is for
  // all ops of the process. An observer that is there twice is told once.
  void observe(std::shared_ptr<mark_observer> observer);
  void stop_observing();
  bool is_observed() const;
  static void observe_all(std::shared_ptr<mark_observer> observer);
  static void stop_observing_all();
  // Of all ops; for those who run bodies of ops in steps of their own.
  static std::vector<std::shared_ptr<mark_observer>> observers_of_all();

  const std::string& name() const;
  const graphed_options& options() const;
  grad_counts counts() const;
  std::size_t frames() const;
  // Device memory of its frames' pools, and what its recordings hold.
  std::size_t bytes() const;

 private:
  std::shared_ptr<graphed_core> core_;
};

template <differentiable Op>
class graphed_op : public graphed {
 public:
  explicit graphed_op(Op op, byte_budget& budget, graphed_options options = {})
      : graphed_op{std::make_shared<const Op>(std::move(op)), budget, options} {}

  const Op& op() const { return *op_; }

 private:
  graphed_op(std::shared_ptr<const Op> op, byte_budget& budget, const graphed_options& options)
      : graphed{erase<Op>(op), budget, options}, op_{std::move(op)} {}

  std::shared_ptr<const Op> op_;
};

// All graphed ops of the process, as Prometheus text: reprise_grad_calls_total{op="…",how="…"}.
std::string grad_metrics();

}  // namespace reprise
