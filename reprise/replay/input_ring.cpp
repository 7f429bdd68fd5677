#include "reprise/replay/input_ring.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "reprise/device/enqueue.hpp"
#include "reprise/kernel/launch.hpp"
#include "reprise/replay/stage_inputs.hpp"

namespace reprise {

namespace {

std::size_t words_of(std::size_t segments) {
  return 2 + 2 * segments;
}

std::size_t slot_bytes_of(const input_layout& layout) {
  return stage_header_bytes(layout.bytes()) + layout.bytes();
}

std::size_t slots_of(std::size_t slot_bytes) {
  return std::clamp(input_ring::small_ring / slot_bytes, input_ring::fewest_slots,
                    input_ring::most_slots);
}

}  // namespace

bool input_ring::serves(device_ref device, bindings given, const input_layout& layout, bool draws) {
  const kernel_table* const table = device.kernels();
  if (table == nullptr || !table->has(stage_inputs.id()) || layout.inputs() >= 64) return false;
  return draws || std::ranges::any_of(given, [&](const binding& b) {
           const input_layout::piece piece = layout.piece_of(b);
           return piece.on_host && piece.bytes != 0;
         });
}

std::size_t input_ring::device_bytes(const input_layout& layout, bool draws) {
  return words_of(layout.inputs() + (draws ? 1 : 0)) * sizeof(std::uint64_t);
}

std::size_t input_ring::pinned_bytes(const input_layout& layout) {
  const std::size_t slot = slot_bytes_of(layout);
  return slot * slots_of(slot) + sizeof(std::uint64_t);
}

input_ring::input_ring(site side, std::byte* words, bindings given, const input_layout& layout,
                       bool draws)
    : slots_{side, slot_bytes_of(layout), slots_of(slot_bytes_of(layout))},
      inputs_{layout.inputs()},
      segments_{inputs_ + (draws ? 1 : 0)},
      block_bytes_{layout.bytes()},
      words_{reinterpret_cast<std::uint64_t*>(words), words_of(segments_)} {
  for (std::size_t i = 0; i < slots_.slots(); ++i) set_masks(slots_.slot(i), 0);
  std::vector<std::uint64_t> first(words_of(segments_), 0);
  for (std::size_t i = 0; i < inputs_; ++i) first[2 + 2 * i] = layout.offset(i);
  for (const binding& b : given) {
    if (!b.is_output) first[3 + 2 * static_cast<std::size_t>(b.slot)] = layout.piece_of(b).bytes;
  }
  if (draws) {
    first[2 + 2 * inputs_] = layout.random_offset();
    first[3 + 2 * inputs_] = sizeof(philox_counter{0}.words());
  }
  copy(side, read<std::uint64_t>{view<const std::uint64_t>{first.data(), first.size()}},
       write<std::uint64_t>{words_});
}

void input_ring::record(site captured, std::byte* block) const {
  const view<std::uint8_t> whole{reinterpret_cast<std::uint8_t*>(block), block_bytes_};
  launch(captured, stage_inputs, read<std::uint8_t>{slots_.memory()}, write<std::uint8_t>{whole},
         inout<std::uint64_t>{words_}, write<std::uint64_t>{slots_.consumed()}, slots_.slot_bytes(),
         slots_.slots(), segments_);
}

void input_ring::fill(site at, bindings given, const philox_counter* random,
                      const input_layout& layout, std::byte* block) {
  std::byte* const slot = slots_.next(at);
  std::byte* const inputs = slot + stage_header_bytes(block_bytes_);
  std::uint64_t there = 0;
  for (const binding& b : given) {
    const input_layout::piece piece = layout.piece_of(b);
    if (piece.bytes == 0) continue;
    const auto i = static_cast<std::size_t>(b.slot);
    if (!piece.on_host) {
      copy_bytes(at, piece.from, block + layout.offset(i), piece.bytes);
    } else {
      std::memcpy(inputs + layout.offset(i), piece.from, piece.bytes);
      there |= std::uint64_t{1} << i;
    }
  }
  if (random != nullptr) {
    const auto words = random->words();
    std::memcpy(inputs + layout.random_offset(), words.data(), sizeof words);
    there |= std::uint64_t{1} << inputs_;
  }
  std::uint64_t said = 0;
  std::memcpy(&said, slot, sizeof said);
  if (said != there) set_masks(slot, there);
}

void input_ring::set_masks(std::byte* slot, std::uint64_t there) const {
  for (std::size_t i = 0; i < stage_masks(block_bytes_); ++i) {
    std::memcpy(slot + i * stage_mask_apart, &there, sizeof there);
  }
}

}  // namespace reprise
