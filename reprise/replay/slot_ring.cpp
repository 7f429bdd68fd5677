#include "reprise/replay/slot_ring.hpp"

#include <atomic>

#include "reprise/base/fault_points.hpp"
#include "reprise/base/mutant.hpp"

namespace reprise {

namespace {

constexpr int looks_before_waiting = 2000;  // some microseconds

}  // namespace

slot_ring::slot_ring(site at, std::size_t slot_bytes, std::size_t slots)
    : slot_bytes_{slot_bytes},
      slots_{slots},
      memory_{at.stream.device(), slot_bytes * slots, at.place},
      consumed_{at.stream.device(), 1, at.place} {
  consumed_[0] = 0;
}

// The slot of replay n held replay n - slots. The launch that follows makes what is written here
// visible to the device.
std::byte* slot_ring::next(site at) {
  const std::atomic_ref consumed{consumed_[0]};
  const auto is_free = [&] {
    return REPRISE_MUTANT(ring_slot_is_rewritten_before_it_was_read) ||
           consumed.load(std::memory_order_acquire) + slots_ > replays_;
  };
  if (!is_free()) {
    ++waits_;
    for (int looks = 0; !is_free() && looks != looks_before_waiting; ++looks) {
    }
    // Everything before, so that replay too; and a device that is lost says so.
    if (!is_free()) {
      landmark("slot ring: waited for a slot");
      at.stream.synchronize(at.place);
    }
  } else if (replays_ % slots_ == 0 && fault_point("slot ring: waits for a slot that is free")) {
    at.stream.synchronize(at.place);
  }
  return slot(replays_ % slots_);
}

}  // namespace reprise
