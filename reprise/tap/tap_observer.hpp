// The observer of a monitor: sees the marks of bodies, puts producers into captures, and publishes
// the marks of eager runs one by one. For this room's .cpp files; on the thread that runs the step.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "reprise/tap/producers.hpp"

namespace reprise {

class tap_observer final : public mark_observer {
 public:
  explicit tap_observer(std::shared_ptr<tap_core> core) : core_{std::move(core)} {}

  std::uint64_t recorded_as() const override { return core_->recorded_as(); }
  void on_begin(step_scope& run) override;
  void on_mark(step_scope& run, point where, const tensor_ref& what) override;
  std::shared_ptr<recorded_marks> on_end(step_scope& run) override;
  void on_abandoned() noexcept override { running_.pop_back(); }
  void on_bare_run(replay_id) override { core_->begin_step(); }

 private:
  // One run of a body; a break of an eager run may run others.
  struct one_run {
    std::shared_ptr<producers> captured;  // null: it is eager
    std::unique_ptr<producer_branch> branch;
    std::uint64_t step = 0;
    replay_id replay = replay_id::none;
    std::vector<request_rows> requests;
    step_gate gate = step_gate::gated;
  };

  void publish(step_scope& run, const one_run& now, const tapped_point& one,
               const tensor_ref& what);
  void take_directly(step_scope& run, const one_run& now, const tapped_point& one,
                     const tensor_ref& what);
  void make_eager_words(step_scope& run);

  std::shared_ptr<tap_core> core_;
  std::vector<one_run> running_;
  block words_;  // of eager runs, which take turns
  block taken_;
  stream_order order_;
};

}  // namespace reprise
