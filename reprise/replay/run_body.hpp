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
  std::vector<tensor_ref> outputs;  // by slot
  std::uint64_t draws = 0;          // of the step's counter, which has not moved yet
  // What each observer has left in the capture, where there is one.
  std::vector<std::shared_ptr<recorded_marks>> marks{};
};

// How the inputs of a run come into its staged block: one of these, or by each replay itself.
struct input_source {
  staging* now = nullptr;            // copied, ahead of the body
  const input_ring* node = nullptr;  // captured, ahead of the body
  replay_id run = replay_id::none;   // of an eager run: observers are told
};

// `staged` is the block of the layout's bytes, which the caller took from `memory` first. `beside`:
// what the body enqueues aside goes there, and is joined at the end; null: it is not apart.
body_run run_body(site at, const step& what, bindings given, const input_layout& layout,
                  std::byte* staged, run_memory& memory, const input_source& from,
                  const break_taker& breaks, observers watching = {},
                  aside_branch* beside = nullptr);

// Throws usage_error unless each output that is bound to the caller's memory has room for exactly
// what the run makes.
void check_outputs(const step& what, bindings given, std::span<const tensor_ref> made);
// Copies them there, in stream order.
void copy_outputs(site at, bindings given, std::span<const tensor_ref> made);

}  // namespace reprise
