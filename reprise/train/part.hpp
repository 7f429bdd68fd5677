// What the parts of a training step have in common (graphed_network.hpp, graphed_heads.hpp,
// graphed_loss.hpp): when one records, when it stops, and what is told.
//
// A part is off unless it is switched on: then its calls run eagerly, bit for bit the same, and
// nothing of capture is ever called. One that is on looks at facts when a run starts (its gates)
// and records at its first calls. What it has recorded holds while its certificate does: the kinds
// of its layers, where its parameters lie, the kernels of its device, that nobody observes it. When
// that changes (drift), the part is retired: it drops its recordings, says so once, and runs
// eagerly until the run is over; later causes are silent. Other shapes, inference and validation
// run eagerly and retire nothing.
//
// One thread at a time for one part.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/grad/counts.hpp"
#include "reprise/grad/graphed_op.hpp"
#include "reprise/grad/precision.hpp"

namespace reprise {

struct part_options {
  bool on = false;
  // In force in every call of the part, whatever is in force where it is called.
  precision in{};
  gradients returned = gradients::moved;
};

// `off`: not switched on. `refused`: its gates found a reason. `ready`: it records, or has.
// `retired`: drift ended it for this run. `cleared`: no run has started since it was cleared.
enum class part_state : std::uint8_t { off, cleared, refused, ready, retired };
std::string_view name_of(part_state state);

struct part_counts {
  grad_counts calls;                    // of all its recordings, cleared ones too
  std::uint64_t clears = 0;             // that dropped a recording
  std::uint64_t retirements = 0;        // at most one a run
  std::uint64_t low_precision = 0;      // calls that ran eagerly, as the device cannot cast
  std::uint64_t empty_targets = 0;      // calls of a group without targets
  // Backwards that were replayed onto gradients that earlier micro-batches had left.
  std::uint64_t replays_inside_windows = 0;
};

// One forward of a part. Copies are the same forward; when the last goes, nothing is owed for it.
struct part_call {
  tensor<float> y;
  forward_ticket ticket;
  std::shared_ptr<graphed> by;  // who made it, and runs its backward
};

}  // namespace reprise
