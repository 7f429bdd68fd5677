#include "reprise/replay/input_ring.hpp"

#include <atomic>
#include <cstring>
#include <vector>

#include "reprise/base/fault_points.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/device/enqueue.hpp"
#include "reprise/kernel/launch.hpp"
#include "reprise/replay/stage_inputs.hpp"

namespace reprise {

namespace {

constexpr int looks_before_waiting = 2000;  // some microseconds

std::size_t words_of(std::size_t segments) {
  return 2 + 2 * segments;
}

}  // namespace

bool input_ring::serves(device_ref device, bindings given, bool draws) {
  const kernel_table* const table = device.kernels();
  if (table == nullptr || !table->has(stage_inputs.id()) || given.size() >= 64) return false;
  return draws || std::ranges::any_of(
                      given, [](const binding& b) { return b.on_host && b.to.bytes() != 0; });
}

input_ring::input_ring(site side, pool& memory, bindings given, const input_layout& layout,
                       bool draws)
    : slot_bytes_{stage_header_bytes + layout.bytes()},
      slots_{std::clamp(small_ring / slot_bytes_, fewest_slots, most_slots)},
      inputs_{given.size()},
      segments_{given.size() + (draws ? 1 : 0)},
      block_bytes_{layout.bytes()},
      ring_{side.stream.device(), slot_bytes_ * slots_, side.place},
      consumed_{side.stream.device(), 1, side.place},
      words_{memory, words_of(segments_), side.stream, side.place} {
  consumed_[0] = 0;
  std::vector<std::uint64_t> words(words_of(segments_), 0);
  for (const binding& b : given) {
    const auto i = static_cast<std::size_t>(b.slot);
    words[2 + 2 * i] = layout.offset(i);
    words[3 + 2 * i] = b.to.bytes();
  }
  if (draws) {
    words[2 + 2 * inputs_] = layout.random_offset();
    words[3 + 2 * inputs_] = sizeof(philox_counter{0}.words());
  }
  copy(side, read<std::uint64_t>{view<const std::uint64_t>{words.data(), words.size()}},
       write<std::uint64_t>{words_});
}

void input_ring::record(site captured, std::byte* block) const {
  const view<std::uint8_t> whole{reinterpret_cast<std::uint8_t*>(block), block_bytes_};
  launch(captured, stage_inputs, read<std::uint8_t>{ring_}, write<std::uint8_t>{whole},
         inout<std::uint64_t>{words_}, write<std::uint64_t>{consumed_}, slot_bytes_, slots_,
         segments_);
}

void input_ring::fill(site at, bindings given, const philox_counter* random,
                      const input_layout& layout, std::byte* block) {
  std::byte* const slot = next_slot(at);
  std::byte* const inputs = slot + stage_header_bytes;
  std::uint64_t there = 0;
  for (const binding& b : given) {
    const auto i = static_cast<std::size_t>(b.slot);
    if (!b.on_host) {
      copy_bytes(at, b.to.data, block + layout.offset(i), b.to.bytes());
    } else if (b.to.bytes() != 0) {
      std::memcpy(inputs + layout.offset(i), b.to.data, b.to.bytes());
      there |= std::uint64_t{1} << i;
    }
  }
  if (random != nullptr) {
    const auto words = random->words();
    std::memcpy(inputs + layout.random_offset(), words.data(), sizeof words);
    there |= std::uint64_t{1} << inputs_;
  }
  std::memcpy(slot, &there, sizeof there);
}

// The slot of replay n held replay n - slots. The launch that follows makes what is written here
// visible to the device.
std::byte* input_ring::next_slot(site at) {
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
      landmark("input ring: waited for a slot");
      at.stream.synchronize(at.place);
    }
  } else if (replays_ % slots_ == 0 && fault_point("input ring: waits for a slot that is free")) {
    at.stream.synchronize(at.place);
  }
  return reinterpret_cast<std::byte*>(ring_.data()) + replays_ % slots_ * slot_bytes_;
}

}  // namespace reprise
