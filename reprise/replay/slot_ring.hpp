// Slots of pinned memory that a node of a graph reads, one a replay: how words reach a replay with
// no copy enqueued and no event recorded.
//
// The host writes what replay n is to read into slot n % slots and launches. The node counts
// replays itself, so it finds its slot, and tells in a pinned word how many it has read; so the
// host knows which slots are free without asking the device. When none is, the call waits, and the
// wait is counted. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/device/memory.hpp"

namespace reprise {

class slot_ring {
 public:
  slot_ring(site at, std::size_t slot_bytes, std::size_t slots);

  // Where the next replay reads, ahead of its launch, which `launched` confirms. One whose launch
  // fails leaves its slot to the next.
  std::byte* next(site at);
  void launched() { ++replays_; }
  // Slot i, while no replay may read it.
  std::byte* slot(std::size_t i) {
    return reinterpret_cast<std::byte*>(memory_.data()) + i * slot_bytes_;
  }

  // For the node: [slots, slot_bytes], and one word.
  const pinned<std::uint8_t>& memory() const { return memory_; }
  const pinned<std::uint64_t>& consumed() const { return consumed_; }
  std::size_t slot_bytes() const { return slot_bytes_; }
  std::size_t slots() const { return slots_; }
  std::size_t pinned_bytes() const { return memory_.size() + sizeof(std::uint64_t); }
  std::uint64_t waits() const { return waits_; }

 private:
  std::size_t slot_bytes_;
  std::size_t slots_;
  pinned<std::uint8_t> memory_;
  pinned<std::uint64_t> consumed_;
  std::uint64_t replays_ = 0;
  std::uint64_t waits_ = 0;
};

}  // namespace reprise
