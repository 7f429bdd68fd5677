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
#include "reprise/replay/marks.hpp"
#include "reprise/replay/run_memory.hpp"
#include "reprise/replay/signature.hpp"

namespace reprise {

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

// The branch of a graph that a body is captured into, for what it enqueues aside.
struct aside_branch {
  explicit aside_branch(device_ref device)
      : side{device, stream_priority::ahead}, crossing{device} {}

  stream side;
  event crossing;
};

// What the work of a break is called with: the run's stream, on which it enqueues or for which it
// waits. Whatever it forks it joins again.
using break_work = std::function<void(stream_ref)>;
// How a run takes a break: at once, or as the end of a segment.
using break_taker = std::function<void(std::string_view why, const break_work& work)>;

// The inputs of a run, where the body finds them.
struct run_inputs {
  std::vector<tensor_ref> by_slot;  // no data: left out; of a direct one its word
  std::uint64_t given = 0;          // bit i: input i is there
  std::uint64_t direct = 0;         // bit i: input i lies behind its word
  const std::uint64_t* random_words = nullptr;
  replay_id run = replay_id::none;  // of an eager run; none where it is not one run of its own
};

// One run of a body. Only valid inside the body.
class step_scope {
 public:
  // All that is given outlives the scope. `beside` is null where there is no branch to take.
  step_scope(const signature& declared, site at, run_memory& memory, run_inputs inputs,
             const break_taker& breaks, std::span<const std::shared_ptr<mark_observer>> observers,
             aside_branch* beside = nullptr);

  operator stream_ref() const { return run_; }
  workspace_ref workspace() const { return run_.workspace(); }
  break_ref breaks() const;
  // On a stream that the body has forked: const auto branch = run.on(side); launch(branch, …).
  branch_scope on(stream_ref branch) const { return {branch, *memory_}; }
  // Where the body enqueues what nothing else in it waits for: a weight's gradient, beside the
  // chain of those of inputs. It comes behind all that is enqueued on the run by now, what was
  // enqueued aside before, and ahead of whatever follows the body; nothing in the body writes what
  // it touches after this call. In a recording it is a branch of the graph, elsewhere the run
  // itself. Valid until the body ends.
  const branch_scope& aside();

  // Whether the call has bound an optional input.
  template <element T>
  bool given(const input<T>& in) const {
    return (inputs_.given >> in.slot() & 1) != 0;
  }
  // Throws usage_error when the call left it out.
  template <element T>
  view<const T> operator[](const input<T>& in) const {
    const tensor_ref& at = input_at(in.slot(), in.of());
    if ((inputs_.direct >> in.slot() & 1) == 0) return elements_of<const T>(at);
    return view<const T>::through(at.data, at.shape.count());
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
    return {reinterpret_cast<T*>(memory_->take(bytes_of(shape, sizeof(T)), place_)), shape.count()};
  }

  // A break: what `work` does cannot be captured. It is called now, when all before it is enqueued,
  // and again at each replay, between two segments; so it keeps nothing of the body by reference,
  // but may keep views of the run's memory, and what it refers to outlives the recording. What it
  // leaves in the run's memory the rest of the body reads. `why` names it in reasons and reports.
  // Throws usage_error, naming the break and the stream, when it leaves work unjoined.
  void eagerly(std::string_view why, const break_work& work);

  // Reserves `count` draws of the step's counter, each a block of four 32-bit words, behind those
  // that this run has reserved. Throws usage_error when the signature names no counter.
  random_base draws(std::uint64_t count);

  // Without types, for rooms that run bodies of their own kind on a step's run (reprise/grad).
  const tensor_ref& input_at(int slot, signature_id of) const;
  tensor_ref make_output(int slot, signature_id of, const dims& shape);
  // Memory that lasts until the recording's next replay.
  tensor_ref keep(dtype type, const dims& shape);
  const run_inputs& inputs() const { return inputs_; }

  // "this tensor is resid_pre 5": free unless somebody observes.
  void mark(point where, const tensor_ref& what) {
    for (const auto& observer : observers_) observer->on_mark(*this, where, what);
  }

  // What was enqueued aside comes ahead of whatever is enqueued on the run from here on.
  void join_aside();
  // The outputs made, by slot. Throws usage_error when one is missing.
  std::vector<tensor_ref> finish() const;
  std::uint64_t drawn() const { return drawn_; }

 private:
  // Throws usage_error where an extent is open, or the bytes are more than any device has.
  std::size_t bytes_of(const dims& shape, std::size_t element_bytes) const;

  const signature* declared_;
  branch_scope run_;
  run_memory* memory_;
  run_inputs inputs_;
  const break_taker* breaks_;
  std::uint64_t drawn_ = 0;
  std::span<const std::shared_ptr<mark_observer>> observers_;
  std::source_location place_;
  std::vector<tensor_ref> outputs_;
  aside_branch* beside_;
  std::optional<branch_scope> aside_;
};

// Why a step is never captured: "prefill". It becomes the rule of its eager runs' reason.
struct eager_only {
  std::string why;
};

// Immutable. What its body refers to outlives it.
class step {
 public:
  step(signature declared, std::function<void(step_scope&)> body)
      : step{std::move(declared), std::move(body), eager_only{}} {}
  // The step has recordings of its own, though another be made with the same signature.
  step(signature declared, std::function<void(step_scope&)> body, eager_only never);

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
