// One run of a step's body over given memory: the part that eager runs, warm-ups and captures
// share, which is why a body cannot tell them apart.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "reprise/replay/input_ring.hpp"
#include "reprise/replay/staging.hpp"
#include "reprise/replay/step.hpp"

namespace reprise {

using observers = std::span<const std::shared_ptr<mark_observer>>;

struct body_run {
  std::byte* staged = nullptr;
  std::vector<tensor_ref> outputs;  // by slot
  std::uint64_t draws = 0;          // of the step's counter, which has not moved yet
};

// Takes the staged block and then all that the body takes from `memory`, in that order. With
// `from`, the inputs are staged first; a capture leaves that out, since each replay does it, by
// itself where there is a `ring`.
body_run run_body(site at, const step& what, bindings given, const input_layout& layout,
                  run_memory& memory, staging* from, observers watching,
                  const input_ring* ring = nullptr);

}  // namespace reprise
