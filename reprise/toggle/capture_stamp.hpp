// What one owner has put into one capture: held by its graph and executables, so that whoever
// remembers it weakly knows when nothing of it can be launched any more.
//
// For this room's .cpp files; under the lock of the device's gate_hub.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "reprise/base/ids.hpp"
#include "reprise/toggle/switch_set.hpp"
#include "reprise/toggle/toggle_options.hpp"

namespace reprise {

class planner_words;

// One work, and the keys that switch it: on while either is.
struct noted_work {
  node_id node = node_id::none;
  std::vector<switch_key> keys;

  bool on_in(const switch_set& set) const {
    return std::ranges::any_of(keys, [&](switch_key key) { return set.contains(key); });
  }
};

struct capture_stamp {
  toggle_owner owner = toggle_owner::none;
  std::uint64_t session = 0;  // of that owner, never the same twice in a process
  std::uint64_t capture = 0;
  std::string label;
  std::vector<noted_work> noted;
  std::vector<node_id> counted;  // launched into it, and noted in no window
  std::uint64_t anomalies = 0;
  std::string first_anomaly;
  std::shared_ptr<planner_words> words;  // of device mode
  bool bound = false;                    // at some time, in that session

  bool holds_works() const { return !noted.empty() || !counted.empty(); }
  node_id some_node() const { return noted.empty() ? counted.front() : noted.front().node; }
};

}  // namespace reprise
