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

// The slot of replay n held replay n - slots.
bool slot_ring::is_free(std::uint64_t replay) const {
  const std::atomic_ref consumed{consumed_[0]};
  return REPRISE_MUTANT(ring_slot_is_rewritten_before_it_was_read) ||
         consumed.load(std::memory_order_acquire) + slots_ > replay;
}

std::byte* slot_ring::after_next(site at) {
  if (!is_free(replays_ + 1)) at.stream.synchronize(at.place);
  return slot((replays_ + 1) % slots_);
}

bool slot_ring::is_passed() const {
  return std::atomic_ref{consumed_[0]}.load(std::memory_order_acquire) > replays_;
}

void slot_ring::meet() {
  std::atomic_ref{consumed_[0]}.store(replays_, std::memory_order_release);
}

// The launch that follows makes what is written here visible to the device.
std::byte* slot_ring::next(site at) {
  if (!is_free(replays_)) {
    ++waits_;
    for (int looks = 0; !is_free(replays_) && looks != looks_before_waiting; ++looks) {
    }
    // Everything before, so that replay too; and a device that is lost says so.
    if (!is_free(replays_)) {
      landmark("slot ring: waited for a slot");
      at.stream.synchronize(at.place);
    }
  } else if (replays_ % slots_ == 0 && fault_point("slot ring: waits for a slot that is free")) {
    at.stream.synchronize(at.place);
  }
  return slot(replays_ % slots_);
}

}  // namespace reprise
