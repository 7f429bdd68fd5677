// Taps of what runs eagerly: each point is published where it is marked, in the line of its stream.
// What does not fit the ring goes straight to the host. For this room's .cpp files; on the thread
// that runs steps.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "reprise/tap/tap_core.hpp"

namespace reprise {

// What one eager step is, from its beginning on.
struct eager_step {
  std::uint64_t step = 0;
  replay_id replay = replay_id::none;
  std::vector<request_rows> requests;
  step_gate gate = step_gate::gated;
};

class eager_taps {
 public:
  explicit eager_taps(std::shared_ptr<tap_core> core) : core_{std::move(core)} {}

  // Of the requests that were planned.
  eager_step begin(replay_id replay);
  // Throws usage_error where it never fits and that is not allowed.
  void publish(site at, const eager_step& now, const tapped_point& one, const tensor_ref& what);

 private:
  void take_directly(site at, const eager_step& now, const tapped_point& one,
                     const tensor_ref& what);
  void make_words(site at);

  std::shared_ptr<tap_core> core_;
  block words_;  // of all eager steps, which take turns
  block taken_;
  stream_order order_;
};

}  // namespace reprise
