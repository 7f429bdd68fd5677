// The producers in one graph: what a recording, or the watch over a graph of somebody else, owns of
// a monitor.
//
// Made while the graph is captured, mark by mark. Before each replay the plan of that step is made
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

// Who launches the graph. Its owner may do so past the monitor, before it is bound and when the
// monitor is gone: such a replay publishes nothing, and what it counts is put right.
enum class launched_by : std::uint8_t { recording, owner };

// What the works of one graph read and write beside tensors and the ring.
struct producer_memory {
  block words;
  block counter;     // of replays
  block taken;       // the word of each producer
  block driven, on;  // of producers that the graph switches: how many, and their handles; whether
                     // each is on
};

class producers final : public recorded_marks {
 public:
  explicit producers(std::shared_ptr<tap_core> core, launched_by whom = launched_by::recording);

  // One producer, launched into the capture that the branch is of.
  void add(stream_ref captured, producer_branch& branch, const tapped_point& one,
           const tensor_ref& what);
  // Behind them all: what they have taken is published there.
  void end(stream_ref captured, producer_branch& branch);

  bool empty() const { return points_.empty(); }
  std::span<const tapped_point> points() const { return points_; }
  // Whether a graph has these works.
  bool are_in(std::span<const node_row> nodes) const;
  // The executable that its owner made of the graph, for the first time or anew.
  void bound(graph_ref of, executable_ref as, twins others);

  std::span<const node_id> driven() const override;
  void recorded(graph_ref of, executable_ref as) override;
  void recorded(const fixed_executable& as) override;

  std::shared_ptr<const reason> make_room(site at) override;
  void before_launch(site at, replay_id id) override;
  void after_launch(site at, bool launched) noexcept override;

 private:
  void begin(stream_ref captured, producer_branch& branch);
  void zero_words();
  void switch_points();
  void set_up(site at);
  void count_again(site at);
  std::uint64_t said_to_be_off() const;

  std::shared_ptr<tap_core> core_;
  launched_by whom_;
  std::vector<tapped_point> points_;
  std::vector<node_id> nodes_;      // of each, from the capture's tail
  std::optional<slot_ring> slots_;  // which plan a replay has
  std::shared_ptr<producer_memory> memory_;
  node_id brings_ = node_id::none;
  std::vector<std::uint64_t> handles_;  // of producers that the graph switches
  bool is_set_up_ = false;
  bool is_switched_ = false;           // by the session of the monitor
  bool brings_plan_ = false;           // the node that does runs in this launch
  bool is_off_ = false;                // the words on the device say that nothing is published
  std::uint64_t enabled_version_ = 0;  // of `enabled` in the points
  step_gate gate_ = step_gate::gated;  // likewise
  flight* promised_ = nullptr;
  std::byte* said_in_ = nullptr;  // the slot of the launch that is under way here
  std::uint64_t step_ = 0;
  replay_id replay_ = replay_id::none;
};

}  // namespace reprise
