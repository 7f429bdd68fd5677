// The producers in the graph of one recording: what the recording owns of a monitor.
//
// Made while the body is captured, mark by mark. Before each replay the plan of that step is made
// from exactly these points, room is asked for, and the slot of that replay says where its plan
// words lie: a node ahead of the producers, beside the model, brings them to the device. Without
// room all producers are told to publish nothing. For this room's .cpp files; used by the thread
// that runs the step.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "reprise/replay/slot_ring.hpp"
#include "reprise/tap/producer_branch.hpp"
#include "reprise/tap/tap_core.hpp"

namespace reprise {

class producers final : public recorded_marks {
 public:
  explicit producers(std::shared_ptr<tap_core> core);

  // One producer, launched into the capture.
  void add(step_scope& run, producer_branch& branch, const tapped_point& one,
           const tensor_ref& what);
  // Behind them all: what they have taken is published there.
  void end(step_scope& run, producer_branch& branch);

  std::shared_ptr<const reason> make_room(site at) override;
  void before_launch(site at, replay_id id) override;
  void after_launch(site at, bool launched) noexcept override;

 private:
  void begin(step_scope& run, producer_branch& branch);
  void switch_points();
  void set_up(site at);

  std::shared_ptr<tap_core> core_;
  std::vector<tapped_point> points_;
  std::vector<node_id> nodes_;      // of each, from the capture's tail
  std::optional<slot_ring> slots_;  // which plan a replay has
  block words_;
  block counter_;  // of replays
  block taken_;    // the word of each producer
  bool is_set_up_ = false;
  bool is_off_ = false;                // the words on the device say that nothing is published
  std::uint64_t enabled_version_ = 0;  // of `enabled` in the points
  step_gate gate_ = step_gate::gated;  // likewise
  flight* promised_ = nullptr;
  std::uint64_t step_ = 0;
  replay_id replay_ = replay_id::none;
};

}  // namespace reprise
