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

  // One producer, launched into the capture that the branch is of.
  void add(stream_ref captured, producer_branch& branch, const tapped_point& one,
           const tensor_ref& what);
  // Behind them all: what they have taken is published there.
  void end(stream_ref captured, producer_branch& branch);

  std::span<const node_id> driven() const override;
  void recorded(graph_ref of, executable_ref as) override;
  void recorded(const fixed_executable& as) override;

  std::shared_ptr<const reason> make_room(site at) override;
  void before_launch(site at, replay_id id) override;
  void after_launch(site at, bool launched) noexcept override;

 private:
  void begin(stream_ref captured, producer_branch& branch);
  void switch_points();
  void set_up(site at);

  std::shared_ptr<tap_core> core_;
  std::vector<tapped_point> points_;
  std::vector<node_id> nodes_;      // of each, from the capture's tail
  std::optional<slot_ring> slots_;  // which plan a replay has
  block words_;
  block counter_;  // of replays
  block taken_;    // the word of each producer
  node_id brings_ = node_id::none;
  // Of producers that the graph switches: how many, and their handles; whether each is on.
  std::vector<std::uint64_t> handles_;
  block driven_, on_;
  bool is_set_up_ = false;
  bool is_switched_ = false;           // by the session of the monitor
  bool brings_plan_ = false;           // the node that does runs in this launch
  bool is_off_ = false;                // the words on the device say that nothing is published
  std::uint64_t enabled_version_ = 0;  // of `enabled` in the points
  step_gate gate_ = step_gate::gated;  // likewise
  flight* promised_ = nullptr;
  std::uint64_t step_ = 0;
  replay_id replay_ = replay_id::none;
};

}  // namespace reprise
