// The host's side of stage_inputs: slots of pinned memory that a recording's first node reads, so
// that a replay with inputs costs the host a memcpy and one launch.
//
// Host inputs, the words of direct ones and those of a random counter go this way; other inputs on
// the device are copied before the launch. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/device/memory.hpp"
#include "reprise/replay/philox_counter.hpp"
#include "reprise/replay/run_memory.hpp"
#include "reprise/replay/signature.hpp"
#include "reprise/replay/slot_ring.hpp"
#include "reprise/replay/staging.hpp"

namespace reprise {

class input_ring {
 public:
  static constexpr std::size_t fewest_slots = 4;
  static constexpr std::size_t most_slots = 32;
  static constexpr std::size_t small_ring = std::size_t{128} << 10;  // bytes, where slots are small

  // Whether the device has a body of stage_inputs, and the call has something for it to bring.
  static bool serves(device_ref device, bindings given, const input_layout& layout, bool draws);

  // Device memory that it takes from its run, and pinned memory that it allocates.
  static std::size_t device_bytes(const input_layout& layout, bool draws);
  static std::size_t pinned_bytes(const input_layout& layout);

  // What the kernel counts with lies at `words`, device_bytes of memory that only this ring's
  // recording writes, and is set up in the order of `side`.
  input_ring(site side, std::byte* words, bindings given, const input_layout& layout, bool draws);

  // Captured before everything else that the recording does.
  void record(site captured, std::byte* block) const;

  // The inputs of the next replay, ahead of its launch on the stream, which `launched` confirms. A
  // replay whose launch fails leaves its slot to the next one.
  void fill(site at, bindings given, const philox_counter* random, const input_layout& layout,
            std::byte* block);
  void launched() { slots_.launched(); }

  std::size_t slots() const { return slots_.slots(); }
  std::size_t pinned_bytes() const { return slots_.pinned_bytes(); }
  std::uint64_t waits() const { return slots_.waits(); }

 private:
  void set_masks(std::byte* slot, std::uint64_t there) const;

  slot_ring slots_;
  std::size_t inputs_;
  std::size_t segments_;  // the inputs, and behind them the words of a counter
  std::size_t block_bytes_;
  view<std::uint64_t> words_;
};

}  // namespace reprise
