// Recording a step with breaks, which is its first run: each segment is captured, instantiated and
// launched, its break runs on the real results, and the next segment begins in the same memory.
// For this room's .cpp files.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "reprise/device/graph.hpp"
#include "reprise/replay/recording_job.hpp"
#include "reprise/replay/touched_memory.hpp"

namespace reprise {

class first_run {
 public:
  // All outlive it. `crossing` orders the caller's stream behind what is set up on the side.
  first_run(device_ref device, event& crossing, recorder::job& now, recording::state& state);

  // The step has run when it returns. When it throws, state is as before, and the host has waited
  // for what ran.
  replay_id record();

 private:
  struct saved {
    tensor_ref where;
    block copy;
  };

  void save_state();
  void put_back();
  body_run run_segments();
  void begin_segment();
  void end_segment(std::string_view why, const break_work& work);

  device_ref device_;
  event& crossing_;
  recorder::job& now_;
  recording::state& state_;
  pool aside_;
  std::vector<saved> saved_;
  std::optional<touched_by_capture> seen_;
  std::optional<open_capture> open_;
  replay_id id_ = replay_id::none;  // none: nothing was launched yet
};

}  // namespace reprise
