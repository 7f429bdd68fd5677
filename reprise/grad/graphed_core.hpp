// A graphed op without its type: its frames, its lane, and the ways of a call. For this room's .cpp
// files.
//
// A call holds the op's turn, then its lane's, to its end. ways.cpp, forward.cpp and backward.cpp
// read top to bottom as the rules of docs/training.md do.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "reprise/base/mutex.hpp"
#include "reprise/grad/checkpoint.hpp"
#include "reprise/grad/graphed_op.hpp"
#include "reprise/grad/lane.hpp"
#include "reprise/grad/op_parts.hpp"
#include "reprise/grad/scoped.hpp"
#include "reprise/replay/cache.hpp"

namespace reprise {

class state_aside;  // state_aside.hpp

class graphed_core {
 public:
  graphed_core(erased_op op, byte_budget& budget, graphed_options options);
  // One that reset_all and the metrics know.
  static std::shared_ptr<graphed_core> make(erased_op op, byte_budget& budget,
                                            const graphed_options& options);
  ~graphed_core();

  forward_result forward(site at, operands given);
  forward_result infer(site at, operands given);
  grad_result backward(site at, const forward_ticket& ticket, operands cotangents,
                       const wanted& what);
  static void reset_all();

  // between_calls.cpp
  void forget(const forward_ticket& ticket);
  void move_live_gradients(site at);
  void drain(std::source_location place);
  void observe(std::shared_ptr<mark_observer> observer);
  void stop_observing();
  bool is_observed() const;
  static void observe_all(std::shared_ptr<mark_observer> observer);
  static void stop_observing_all();
  static std::vector<std::shared_ptr<mark_observer>> observers_of_all();

  const erased_op& op() const { return parts_->op; }
  byte_budget& budget() const { return budget_; }
  const graphed_options& options() const { return options_; }
  const std::string& name() const { return parts_->op.declared.name(); }
  grad_counts counts() const;
  std::size_t frames() const;
  std::size_t bytes() const;

 private:
  // A frame that this op uses.
  struct used_frame {
    std::shared_ptr<frame> in;
    std::uint64_t group = 0;  // of a region's ops; 0: the op's own
    std::size_t slot = 0;     // there
    bool is_new = false;      // of another op: this one has not used it yet
  };
  // What a call has found: a frame to replay in, leave to capture one, or why it runs eagerly.
  struct way {
    static way eagerly(eager_cause cause) {
      way by;
      by.eager = cause;
      return by;
    }
    static way replaying(used_frame& used) {
      way by;
      by.used = &used;
      return by;
    }
    static way capturing(lane::group* group = nullptr, std::size_t slot = 0) {
      way by;
      by.group = group;
      by.slot = slot;
      return by;
    }

    std::optional<eager_cause> eager;
    used_frame* used = nullptr;    // null: capture
    lane::group* group = nullptr;  // of the frame to capture; null: the op's own
    std::size_t slot = 0;
  };
  // A call's operands, saved and bound.
  struct bound_call {
    std::shared_ptr<forward_call> call;
    std::vector<binding> given;
    std::vector<binding> recorded;      // the same for a recording: with places of outputs
    std::vector<std::uint64_t> places;  // by slot; 0: it stays in the frame
    bool has_host_input = false;
  };
  // A backward that is under way.
  struct owed_backward;
  // The forward and then the backward, as one step.
  struct forward_again {
    step what;
    std::vector<int> gradient_slots;  // by input: the output of the step; -1: none
  };

  // While it lives this thread is inside a call of a graphed op, and makes no other: a body that
  // did would wait for the turns that its own call holds. Throws usage_error.
  class call_here {
   public:
    explicit call_here(const graphed_core& of);
    ~call_here();
    call_here(const call_here&) = delete;
    call_here& operator=(const call_here&) = delete;
  };

  std::unique_lock<mutex> own_turn() const;
  void reset();
  template <class Also>
  void leave(Also&& also);
  lane& home(stream_ref stream);
  // Who is told of the marks of a call that begins now, each once.
  std::vector<std::shared_ptr<mark_observer>> watching() const;

  // ways.cpp
  way find_way(bindings given);
  way find_in_region(bindings given, region& here);
  way check_frame(used_frame& used, bindings given);
  bool fits(const frame& one, bindings given) const;
  bool may_capture(bindings given) const;
  void require_same_work(const signature& other) const;

  // forward.cpp
  bound_call bind(site at, operands given) const;
  void refuse_outputs_over_inputs(bindings given) const;
  forward_result replay(site at, bound_call& bound, used_frame& used);
  forward_result capture(site at, bound_call& bound, const way& by);
  forward_result run_eagerly(site at, bound_call& bound, eager_cause cause);
  forward_result run_apart(site at, bound_call& bound);
  void finish(state_aside& aside);
  void refuse_host_values(bool has_host_input) const;
  admission admission_of(frame& in, const std::size_t& beside) const;
  void say_what_differs(bindings given);

  // results.cpp
  forward_result result_of(const bound_call& bound) const;
  void make_outputs(site at, bound_call& bound, std::span<const tensor_ref> made,
                    forward_result& result, pool& results) const;
  void place_outputs(const forward_result& result, std::vector<std::uint64_t>& places) const;
  void copy_outputs(site at, std::span<const tensor_ref> made, const forward_result& result) const;
  // Of a run whose memory is used again: results of their own, states too.
  void take_outputs(site at, bound_call& bound, std::span<const tensor_ref> made,
                    forward_result& result, pool& results) const;
  void leave_states(const std::shared_ptr<frame>& in, forward_result& result) const;
  void moved_on();
  signature inference_signature() const;

  // owed_backward.cpp
  void check_ticket(const forward_ticket& ticket) const;
  owed_backward owed_by(site at, const forward_ticket& ticket, operands cotangents,
                        const wanted& what) const;
  void require_unchanged(const forward_call& call) const;

  // backward.cpp
  grad_result run_on_frame(site at, owed_backward& owed);
  void replay_stale(site at, owed_backward& owed);
  grad_result replay_backward(site at, owed_backward& owed, bindings given,
                              std::vector<std::uint64_t>& places);
  grad_result run_on_static_state(site at, owed_backward& owed, std::optional<eager_cause> cause);
  grad_result run_again(site at, owed_backward& owed, eager_cause cause);
  bool capture_backward(site at, owed_backward& owed, backward_part part, const run_needs& took);
  void refuse_deliveries(const owed_backward& owed) const;
  void fail_backward(frame& in, std::shared_ptr<const reason> why);
  void release_pool(frame& of, std::source_location place);

  // delivery.cpp
  backward_part backward_over(frame& in, const owed_backward& owed) const;
  const forward_again& step_again(const owed_backward& owed);
  // For a recording, `places` are where gradients go, by input; nowhere at first. They live as long
  // as what is returned. Null: for an eager run.
  std::vector<binding> bind_backward(const backward_part& part, const owed_backward& owed,
                                     std::span<const std::int32_t> rules,
                                     std::vector<std::uint64_t>* places) const;
  std::vector<std::int32_t> rules_for(const owed_backward& owed) const;
  std::vector<block> make_sums(site at, const owed_backward& owed, backward_run& run,
                               view<const std::int32_t> zero) const;
  void put_sums(site at, owed_backward& owed, const backward_run& run,
                const std::vector<block>& sums);
  void note_delivered(owed_backward& owed, parameter_bits delivers, bool is_whole) const;
  grad_result empty_gradients() const;
  void make_gradients(site at, const owed_backward& owed, grad_result& result) const;
  void copy_gradients(site at, const grad_result& result, std::span<const int> slots,
                      std::span<const tensor_ref> made) const;
  void lend_gradients(const owed_backward& owed, const backward_part& part, const step_result& run,
                      grad_result& result) const;

  // graphed_core.cpp
  std::shared_ptr<const reason> why_eager(eager_cause cause);
  static std::string actual_of(const reason& why);
  void tell_once(eager_cause cause, std::string_view text);

  byte_budget& budget_;
  graphed_options options_;
  mutable mutex turn_;
  philox_counter draws_{0};  // set before each run, moved by it
  std::shared_ptr<op_parts> parts_;
  saved_tensors eager_saves_;  // of the eager forward that runs now
  backward_run running_;       // of the backward that runs again now
  precision again_forward_;    // and of its forward
  std::optional<step> eager_forward_;
  std::optional<step> recorded_forward_;          // the same work, for replays
  std::map<std::uint64_t, forward_again> again_;  // by what is wanted

  std::shared_ptr<lane> home_;
  std::vector<used_frame> frames_;
  bool capture_failed_ = false;
  bool released_ = false;

  std::optional<step> inference_step_;
  std::unique_ptr<replay_cache> inference_;

  grad_counts counts_;
  std::set<eager_cause> told_;
  std::array<std::shared_ptr<const reason>, eager_causes> reasons_;
  std::vector<std::shared_ptr<mark_observer>> observers_;  // of this op alone
};

}  // namespace reprise
