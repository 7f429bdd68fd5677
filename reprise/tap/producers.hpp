// The producers in the graph of one recording: what the recording owns of a monitor.
//
// Made while the body is captured, mark by mark. Before each replay the plan of that step is made
// from exactly these points, room is asked for, and the plan words are copied ahead of the launch
// in the order of its stream; without room all producers are told to publish nothing. For this
// room's .cpp files; used by the thread that runs the step.
#pragma once

#include <memory>
#include <vector>

#include "reprise/tap/producer_branch.hpp"
#include "reprise/tap/tap_core.hpp"

namespace reprise {

class producers final : public recorded_marks {
 public:
  explicit producers(std::shared_ptr<tap_core> core);

  // One producer, launched into the capture.
  void add(step_scope& run, producer_branch& branch, const tapped_point& one,
           const tensor_ref& what);

  std::shared_ptr<const reason> make_room(site at) override;
  void before_launch(site at, replay_id id) override;
  void after_launch(site at, bool launched) noexcept override;

 private:
  void begin(stream_ref captured);
  void switch_points();

  std::shared_ptr<tap_core> core_;
  std::vector<tapped_point> points_;
  std::vector<node_id> nodes_;  // of each, from the capture's tail
  block words_;
  block arrivals_;  // one for each node
  bool arrivals_are_set_ = false;
  bool is_on_ = false;  // the words on the device say so
  bool words_are_set_ = false;
  std::uint64_t enabled_version_ = 0;
  flight* promised_ = nullptr;
  std::uint64_t step_ = 0;
  replay_id replay_ = replay_id::none;
};

}  // namespace reprise
