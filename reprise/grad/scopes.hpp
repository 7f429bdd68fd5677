// What a differentiable op's two bodies are given: `forward_scope` makes outputs and saves what the
// backward needs; `backward_scope` reads it, forms the gradients that are wanted and delivers those
// of parameters. Two phases, two types: a backward cannot save.
//
// Both only enqueue, cannot tell whether they run eagerly, in a warm-up or in a capture, and must
// take the same memory and enqueue the same work each time for inputs of the same shapes. Only
// valid inside the body.
#pragma once

#include <bitset>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/base/gradient_rule.hpp"
#include "reprise/grad/precision.hpp"
#include "reprise/replay/step.hpp"

namespace reprise {

struct erased_op;  // graphed_op.hpp

// Of the parameters that an op trains: bit i is the i-th that its signature names.
inline constexpr std::size_t most_trained = 512;
using parameter_bits = std::bitset<most_trained>;

// What a forward leaves for its backward, by name: inputs where the bodies read them, and what the
// body saved. In a frame, or in the memory of one eager run.
struct saved_tensors {
  std::vector<tensor_ref> inputs;  // by slot; no data: left out
  std::uint64_t given = 0;         // bit i: input i is there
  std::uint64_t direct = 0;        // bit i: input i lies behind a word
  std::map<std::string, tensor_ref, std::less<>> named;
  std::vector<tensor_ref> outputs;  // by slot
  const std::uint64_t* random_words = nullptr;
  std::uint64_t draws_from = 0;  // how many numbers of the run were drawn before its own
  std::uint64_t drawn = 0;
  std::vector<saved_tensors> inner;  // of the ops inside, in the order that the body runs them
};

class forward_scope {
 public:
  // For those that run forwards. All outlive the scope.
  forward_scope(step_scope& run, const signature& declared, saved_tensors& saves,
                const precision& in_force);

  operator stream_ref() const { return run_; }
  workspace_ref workspace() const { return run_.workspace(); }
  break_ref breaks() const { return run_.breaks(); }
  branch_scope on(stream_ref branch) const { return run_.on(branch); }

  // An input. Staged ones lie in memory that the backward reads too.
  template <element T>
  view<const T> operator[](const input<T>& in) const {
    const tensor_ref& at = input_at(in.slot(), in.of());
    if ((saves_.direct >> in.slot() & 1) == 0) return elements_of<const T>(at);
    return view<const T>::through(at.data, at.shape.count());
  }
  template <element T>
  dims shape(const input<T>& in) const {
    return input_at(in.slot(), in.of()).shape;
  }
  template <element T>
  bool given(const input<T>& in) const {
    return (saves_.given >> in.slot() & 1) != 0;
  }

  // An output's memory, once per run. The backward may read it (backward_scope::made).
  template <element T>
  view<T> make(const output<T>& out, const dims& shape) {
    return elements_of<T>(make_output(out.slot(), out.of(), shape));
  }
  // Memory that the backward finds under this name. Once per run and name.
  template <element T>
  view<T> save(std::string_view name, const dims& shape) {
    return elements_of<T>(save_tensor(name, dtype_of<T>, shape));
  }
  // Memory until the end of the body.
  template <element T>
  view<T> scratch(const dims& shape) {
    return run_.scratch<T>(shape);
  }

  // Reserves random numbers, as step_scope::draws does; the backward, and a forward that is run
  // again for it, have the same.
  random_base draws(std::uint64_t count) { return run_.draws(count); }
  void mark(point where, const tensor_ref& what) { run_.mark(where, what); }

  // In force for this forward, whenever it is run again.
  const precision& in_force() const { return precision_; }

  // Runs the forward of another op as a part of this one, on these inputs, by slot; one without
  // data is left out. What the op makes and saves lasts as what this body saves. `into` says, by
  // slot, which output of this op it makes; -1, or none: it is kept. Returns its outputs, by slot.
  //
  // This op's signature includes the other's (signature::include). The backward runs the ops inside
  // by their number: the first that this body runs is 0.
  std::vector<tensor_ref> inner(const erased_op& op, std::span<const tensor_ref> inputs,
                                std::span<const int> into = {});

 private:
  // Memory for an output of an op inside, by slot.
  using maker = std::function<tensor_ref(int slot, const dims& shape)>;

  const tensor_ref& input_at(int slot, signature_id of) const;
  tensor_ref save_tensor(std::string_view name, dtype type, const dims& shape);
  tensor_ref make_output(int slot, signature_id of, const dims& shape);

  step_scope& run_;
  const signature& declared_;
  saved_tensors& saves_;
  precision precision_;
  const maker* maker_ = nullptr;  // null: outputs are the step's
};

// Where a parameter's gradient goes in this run: the kernel reads the rule (gradient_rule.hpp) from
// the word, and writes the buffer, adds to it, or leaves it.
struct delivery {
  view<float> to;
  view<const std::int32_t> rule;  // one element
};

class backward_scope {
 public:
  struct plan;  // graphed_core's
  backward_scope(step_scope& run, const plan& with);

  operator stream_ref() const { return run_; }
  workspace_ref workspace() const { return run_.workspace(); }
  break_ref breaks() const { return run_.breaks(); }
  branch_scope on(stream_ref branch) const { return run_.on(branch); }
  // For gradients of parameters, which nothing in the body waits for (step_scope::aside).
  const branch_scope& aside() const { return run_.aside(); }

  // What the forward was given. A backward may overwrite what was saved by name: it runs once.
  template <element T>
  view<const T> saved(const input<T>& in) const {
    const tensor_ref& at = input_at(in.slot(), in.of());
    if (!is_direct(in.slot())) return elements_of<const T>(at);
    return view<const T>::through(at.data, at.shape.count());
  }
  template <element T>
  dims shape(const input<T>& in) const {
    return input_at(in.slot(), in.of()).shape;
  }
  template <element T>
  bool given(const input<T>& in) const {
    return was_given(in.slot());
  }
  template <element T>
  view<T> saved(std::string_view name) const {
    return elements_of<T>(named(name, dtype_of<T>));
  }
  // An output as the forward made it.
  template <element T>
  view<const T> made(const output<T>& out) const {
    return elements_of<const T>(made_at(out.slot(), out.of()));
  }
  // A returned state as the forward made it. The backward may overwrite it, since nobody may read
  // it any more. Throws usage_error for another output.
  template <element T>
  view<T> state(const output<T>& out) const {
    return elements_of<T>(state_at(out.slot(), out.of()));
  }

  // Whether the caller gave a cotangent of this output; without one it counts as zero.
  template <element T>
  bool has_grad(const output<T>& out) const {
    return has_cotangent(out.slot(), out.of());
  }
  // Of an output as the forward made it, and so of its cotangent.
  template <element T>
  dims shape(const output<T>& out) const {
    return made_at(out.slot(), out.of()).shape;
  }
  // The cotangent of an output. Throws usage_error when the caller gave none.
  template <element T>
  view<const T> grad(const output<T>& out) const {
    return elements_of<const T>(cotangent(out.slot(), out.of()));
  }
  // Whether the caller wants the gradient of this input.
  template <element T>
  bool wants(const input<T>& in) const {
    return wants_slot(in.slot(), in.of());
  }
  // The gradient of an input, to be written whole, once per run; only where it is wanted.
  template <element T>
  view<T> grad(const input<T>& in) {
    return elements_of<T>(make_gradient(in.slot(), in.of()));
  }
  // Where the gradient of a parameter that the signature trains goes: one kernel delivers it, once
  // per run, whole. Throws usage_error for another parameter, and the second time.
  delivery add_to(const parameter& trained);

  template <element T>
  view<T> scratch(const dims& shape) {
    return run_.scratch<T>(shape);
  }
  // The random numbers that the forward drew, in its order.
  random_base draws(std::uint64_t count);

  // Casts of the forward; products in force at this backward.
  const precision& in_force() const;

  // Runs the backward of the op inside that this op's forward ran as its `which`-th, with these
  // cotangents of its outputs, by slot; one without data counts as zero. `wants`: bit i asks for
  // the gradient of its input i. `into` says, by input slot, which input of this op that is the
  // gradient of; -1, or none: it lasts until the end of the body. Gradients of parameters are
  // delivered as this op's. Returns the gradients that are wanted, by input slot.
  std::vector<tensor_ref> inner(std::size_t which, const erased_op& op,
                                std::span<const tensor_ref> cotangents, std::uint64_t wants,
                                std::span<const int> into = {});

 private:
  bool is_direct(int slot) const;
  bool was_given(int slot) const;
  const tensor_ref& input_at(int slot, signature_id of) const;
  tensor_ref named(std::string_view name, dtype type) const;
  const tensor_ref& made_at(int slot, signature_id of) const;
  const tensor_ref& state_at(int slot, signature_id of) const;
  bool has_cotangent(int slot, signature_id of) const;
  const tensor_ref& cotangent(int slot, signature_id of) const;
  bool wants_slot(int slot, signature_id of) const;
  tensor_ref make_gradient(int slot, signature_id of);

  step_scope& run_;
  const plan& plan_;
  std::uint64_t drawn_ = 0;
  parameter_bits delivered_;
};

}  // namespace reprise
