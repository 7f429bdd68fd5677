// Which way a change goes: by the host or by another executable, and why. Pure arithmetic over
// figures that were measured on one H200 with driver 580; the units are microseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "reprise/toggle/toggle_options.hpp"

namespace reprise {

namespace toggle_costs {

inline constexpr double host_call_us = 0.6;    // 0.35 to 0.85 for each node that is switched
inline constexpr double next_launch_us = 0.5;  // for each changed node, in the next launch
inline constexpr double off_node_us = 0.29;    // 0.27 to 0.31 for each node that is off, a replay
inline constexpr double variant_us = 290;      // 230 to 350, once
inline constexpr double demotion_us = 0.1;     // for each changed node, at every replay, for good
inline constexpr std::size_t never_demoted =
    200;                                     // nodes of an executable, up to which none was seen
inline constexpr double instantiate_us = 5;  // 3.9 to 6 for each node, once

}  // namespace toggle_costs

// One change of one executable, as it stands before it is made.
struct toggle_facts {
  std::size_t nodes = 0;       // of the graph
  std::size_t switchable = 0;  // of those
  std::size_t off = 0;         // of the switchable, once it is made
  std::size_t changed = 0;     // nodes that the host would have to switch
  std::size_t touched = 0;     // nodes that it has ever switched in this executable
  double launches_per_change = 1;
  std::uint64_t wanted_before = 0;  // how often this very set was
  bool has_variant = false;
  bool may_have_twins = true;
};

struct toggle_choice {
  toggle_mode way = toggle_mode::host_lazy;  // or variants
  std::string why;
};

toggle_choice choose_way(const toggle_facts& facts);

// What replays of an executable lose each, since its nodes were switched.
double predicted_demotion_us(std::size_t nodes, std::size_t touched);

}  // namespace reprise
