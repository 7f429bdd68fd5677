// How a session switches, and whose it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "reprise/base/ids.hpp"

namespace reprise {

// docs/toggle.md has what each costs.
enum class toggle_mode : std::uint8_t {
  automatic,   // variants or host_lazy, by what each would cost
  variants,    // an executable for each set: what is off is not in the graph
  host_lazy,   // the host switches what differs, ahead of an executable's next launch
  host_eager,  // the host switches every bound executable at once; none may be in flight
  device,      // kernels of the graph switch (ops/switch_nodes.hpp), by words that a copy brings
};

std::string_view name_of(toggle_mode mode);

// A monitor. Its sessions come one after the other; what an earlier one recorded is stale to it,
// and none of anybody else's business.
enum class toggle_owner : std::uint64_t { none };
toggle_owner next_toggle_owner();

struct toggle_options {
  toggle_mode mode = toggle_mode::automatic;
  toggle_owner owner = toggle_owner::none;  // none: one of its own
  // Of all executables that variants make, by the device's estimate; the one in use is never
  // dropped.
  std::size_t variant_bytes = std::size_t{64} << 20;
  // Graphs of one session have the same keys unless this is set: one that lacks some was recorded
  // under another set of points, as a rule by mistake. Where they may, any key can be set.
  bool keys_may_differ = false;
  // Executables that the guard leaves alone, though they have works of this session. Asked at their
  // launch, while sessions of the device wait: it calls none of them.
  std::function<bool(executable_id)> exempt = {};
};

// Whether other executables of the same graph may run in the place of a bound one. They have what
// the graph was captured with: where its owner changes parameters of the executable, or updates it,
// they would run without that.
enum class twins : std::uint8_t { allowed, forbidden };

}  // namespace reprise
