// A step: a signature and a body that cannot tell whether it runs eagerly, in a warm-up or in a
// capture. The body gets a `step_scope` and enqueues work; it must take the same memory and enqueue
// the same work each time for inputs of the same shapes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/base/error.hpp"
#include "reprise/device/device.hpp"
#include "reprise/replay/run_memory.hpp"
#include "reprise/replay/signature.hpp"

namespace reprise {

// A named place in a model: {"resid_pre", 5}.
struct point {
  std::string_view kind;
  int layer = 0;
};

// Random numbers of one call of draws(): kernels read {seed, counter} and add the offset.
struct random_base {
  view<const std::uint64_t> words;
  std::uint64_t offset = 0;
};

// A branch of a run: a stream that the body forked from the run's, and joins to it again. Kernels
// that are launched through it share a workspace of its own, which lasts as long as the run.
class branch_scope {
 public:
  branch_scope(stream_ref stream, run_memory& memory) : stream_{stream}, memory_{&memory} {}

  operator stream_ref() const { return stream_; }
  // Valid while this object is.
  workspace_ref workspace() const;

 private:
  stream_ref stream_;
  run_memory* memory_;
  mutable std::span<std::byte> workspace_;
};

class step_scope;

// Told of each mark as the body passes it; may enqueue work of its own on the scope's stream. While
// one is installed, steps run eagerly.
class mark_observer {
 public:
  virtual ~mark_observer() = default;
  virtual void on_mark(step_scope& run, point where, const tensor_ref& what) = 0;
};

// One run of a body. Only valid inside the body.
class step_scope {
 public:
  step_scope(const signature& declared, stream_ref stream, run_memory& memory,
             std::span<const tensor_ref> inputs, const std::uint64_t* random_words,
             std::span<const std::shared_ptr<mark_observer>> observers, std::source_location place);

  operator stream_ref() const { return run_; }
  workspace_ref workspace() const { return run_.workspace(); }
  // On a stream that the body has forked: const auto branch = run.on(side); launch(branch, …).
  branch_scope on(stream_ref branch) const { return {branch, *memory_}; }

  template <element T>
  view<const T> operator[](const input<T>& in) const {
    return elements_of<const T>(input_at(in.slot(), in.of()));
  }
  template <element T>
  dims shape(const input<T>& in) const {
    return input_at(in.slot(), in.of()).shape;
  }

  // An output's memory, once per run; its contents are undefined until the body writes them.
  template <element T>
  view<T> make(const output<T>& out, const dims& shape) {
    return elements_of<T>(make_output(out.slot(), out.of(), shape));
  }
  // Memory until the end of the body.
  template <element T>
  view<T> scratch(const dims& shape) {
    return {reinterpret_cast<T*>(memory_->take(shape.count() * sizeof(T), place_)), shape.count()};
  }

  // Reserves `count` draws of the step's counter, each a block of four 32-bit words, behind those
  // that this run has reserved. Throws usage_error when the signature names no counter.
  random_base draws(std::uint64_t count);

  // "this tensor is resid_pre 5": free unless somebody observes.
  void mark(point where, const tensor_ref& what) {
    for (const auto& observer : observers_) observer->on_mark(*this, where, what);
  }

  // The outputs made, by slot. Throws usage_error when one is missing.
  std::vector<tensor_ref> finish() const;
  std::uint64_t drawn() const { return drawn_; }

 private:
  const tensor_ref& input_at(int slot, signature_id of) const;
  tensor_ref make_output(int slot, signature_id of, const dims& shape);

  const signature* declared_;
  branch_scope run_;
  run_memory* memory_;
  std::span<const tensor_ref> inputs_;
  const std::uint64_t* random_words_;
  std::uint64_t drawn_ = 0;
  std::span<const std::shared_ptr<mark_observer>> observers_;
  std::source_location place_;
  std::vector<tensor_ref> outputs_;
};

// Why a step is never captured: "prefill". It becomes the rule of its eager runs' reason.
struct eager_only {
  std::string why;
};

// Immutable. What its body refers to outlives it.
class step {
 public:
  step(signature declared, std::function<void(step_scope&)> body)
      : declared_{std::move(declared)}, body_{std::move(body)} {}
  step(signature declared, std::function<void(step_scope&)> body, eager_only never)
      : declared_{std::move(declared)}, body_{std::move(body)}, never_{std::move(never.why)} {}

  const signature& declared() const { return declared_; }
  const std::string& name() const { return declared_.name(); }
  void run(step_scope& scope) const { body_(scope); }
  // Empty when the step may be captured.
  const std::string& never_captured() const { return never_; }

 private:
  signature declared_;
  std::function<void(step_scope&)> body_;
  std::string never_;
};

}  // namespace reprise
