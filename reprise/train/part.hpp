// What the parts of a training step have in common (graphed_network.hpp, graphed_heads.hpp,
// graphed_loss.hpp): options, states and counts.
//
// A part is off unless it is switched on: then its calls run eagerly, bit for bit the same, and
// nothing of capture is ever called. One that is on looks at facts when a run starts (gates.hpp)
// and records at its first calls. What it has recorded holds while its certificate does
// (certificate.hpp): the kinds of its layers, where its parameters lie, the kernels of its device;
// and while nobody observes it. When that changes (drift), the part is retired: it drops its
// recordings, says so once, and runs eagerly until the next run starts; later causes are silent.
// Other shapes, inference and validation run eagerly and retire nothing.
//
// A part belongs to one thread at a time, and to one run (training_run.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "reprise/grad/counts.hpp"
#include "reprise/grad/graphed_op.hpp"
#include "reprise/grad/precision.hpp"

namespace reprise {

struct part_options {
  bool on = false;
  // In force in every call of the part, recorded or not, whatever is in force where it is called.
  precision in{};
  gradients returned = gradients::moved;
};

// `off`: not switched on. `cleared`: no run has started since it was made or cleared. `refused`:
// its gates found a reason. `ready`: it records, or has. `retired`: drift ended that for this run.
enum class part_state : std::uint8_t { off, cleared, refused, ready, retired };
std::string_view name_of(part_state state);

struct part_counts {
  grad_counts calls;  // of a module, in all runs
  // Of a loss, which is one step: how its calls ran.
  std::uint64_t captured = 0;
  std::uint64_t replayed = 0;
  std::uint64_t eager = 0;

  std::uint64_t clears = 0;         // that dropped recordings, by an event, growth or retirement
  std::uint64_t retirements = 0;    // at most one a run
  std::uint64_t low_precision = 0;  // calls that ran eagerly, as the device has no such bodies
  std::uint64_t empty_targets = 0;  // calls of a group without targets
  // Backwards that were replayed onto gradients that earlier micro-batches had left.
  std::uint64_t replays_inside_windows = 0;

  std::uint64_t replays() const { return replayed + calls.forward_replay + calls.backward_replay; }
};

// One forward of a part. Copies are the same forward; when the last goes, nothing is owed for it.
// It keeps what its backward needs, also over a clear of the part: then that runs eagerly.
struct part_call {
  tensor<float> y;
  forward_ticket ticket;
  std::shared_ptr<graphed> by;  // who ran it, and runs its backward
  std::uint64_t of = 0;         // the module that it is a forward of
};

}  // namespace reprise
