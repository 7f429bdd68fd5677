// The launch gate: whoever has to bring an executable up to date before it runs (the nodes that a
// step wants on, say) is asked at each launch. A device has one gate or none; none costs one test.
#pragma once

#include <cstdint>

#include "reprise/base/ids.hpp"

namespace reprise {

class stream_ref;

enum class verdict : std::uint8_t { launch, refuse };

class launch_gate {
 public:
  virtual ~launch_gate() = default;

  // Before each launch of an executable on the device, replays of recordings among them, on the
  // thread that launches: several threads may be in it at once.
  // May change nodes of the executable, or put another one (its twin with other nodes) in its
  // place. `refuse` makes the launch throw usage_error: nothing was enqueued.
  virtual verdict before(executable_id& may_swap, stream_ref stream) = 0;
};

}  // namespace reprise
