#include "reprise/replay/staging.hpp"

#include <algorithm>
#include <cstring>

#include "reprise/base/fault_points.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/device/enqueue.hpp"

namespace reprise {

namespace {

constexpr std::size_t slot_alignment = 256;  // as of a buffer of its own

std::size_t rounded(std::size_t bytes) {
  return (bytes + slot_alignment - 1) / slot_alignment * slot_alignment;
}

// Of a half whose slots are of this size.
std::size_t half_bytes(std::size_t slot) {
  return slot * std::clamp(staging::small_half / slot, staging::fewest_slots, staging::most_slots);
}

}  // namespace

std::uint64_t direct_inputs(const signature& declared, bindings given) {
  std::uint64_t direct = 0;
  for (const binding& b : given) {
    if (b.is_output || b.on_host || b.to.bytes() == 0) continue;
    const auto slot = static_cast<std::size_t>(b.slot);
    if (declared.inputs()[slot].mode == input_mode::direct) direct |= std::uint64_t{1} << slot;
  }
  return direct;
}

input_layout::input_layout(const signature& declared, bindings given, std::uint64_t direct,
                           direct_as how)
    : offsets_(declared.inputs().size()), direct_{direct}, how_{how} {
  std::vector<std::size_t> sizes(offsets_.size());
  for (const binding& b : given) {
    if (!b.is_output) sizes[static_cast<std::size_t>(b.slot)] = piece_of(b).bytes;
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    offsets_[i] = bytes_;
    bytes_ += rounded(sizes[i]);
  }
  random_offset_ = bytes_;
  if (declared.random() != nullptr) bytes_ += slot_alignment;
}

input_layout::piece input_layout::piece_of(const binding& b) const {
  if (b.is_output) return {};
  if (!is_direct(static_cast<std::size_t>(b.slot))) return {b.to.data, b.to.bytes(), b.on_host};
  if (how_ == direct_as::addresses) return {};
  return {reinterpret_cast<const std::byte*>(&b.to.data), sizeof b.to.data, true};
}

void staging::stage(stream_ref stream, bindings given, const input_layout& layout, std::byte* block,
                    std::source_location place, const philox_counter* random) {
  const site at{stream, place};
  std::size_t first = layout.bytes();  // the span of the block that comes from the host
  std::size_t last = 0;
  for (const binding& b : given) {
    const input_layout::piece piece = layout.piece_of(b);
    if (!piece.on_host || piece.bytes == 0) continue;
    const std::size_t offset = layout.offset(static_cast<std::size_t>(b.slot));
    first = std::min(first, offset);
    last = std::max(last, offset + piece.bytes);
  }
  std::array<std::uint64_t, 2> words{};
  if (random != nullptr) {
    words = random->words();
    first = std::min(first, layout.random_offset());
    last = layout.random_offset() + sizeof words;
  }
  if (first < last) {
    std::byte* const slot = free_slot(last - first, stream, place);
    for (const binding& b : given) {
      const input_layout::piece piece = layout.piece_of(b);
      if (!piece.on_host || piece.bytes == 0) continue;
      const std::size_t offset = layout.offset(static_cast<std::size_t>(b.slot));
      std::memcpy(slot + (offset - first), piece.from, piece.bytes);
    }
    if (random != nullptr) {
      std::memcpy(slot + (layout.random_offset() - first), words.data(), sizeof words);
    }
    copy_bytes(at, slot, block + first, last - first);
  }
  // Inputs on the device come after: the one copy above may have run over their places.
  for (const binding& b : given) {
    const input_layout::piece piece = layout.piece_of(b);
    if (piece.on_host || piece.bytes == 0) continue;
    copy_bytes(at, piece.from, block + layout.offset(static_cast<std::size_t>(b.slot)),
               piece.bytes);
  }
}

std::byte* staging::free_slot(std::size_t bytes, stream_ref stream, std::source_location place) {
  const std::size_t slot = rounded(bytes);
  wanted_ = std::max(wanted_, half_bytes(slot));
  if (halves_[1].memory.bytes() == 0) {
    // Both at once, so that a recording whose first replay has run allocates no more.
    for (half& h : halves_) {
      h.left.emplace(device_, place);
      h.memory = pinned_block{device_, wanted_, place};
    }
  }
  if (used_ + slot > halves_[current_].memory.bytes()) enter_other_half(stream, place);
  std::byte* const begin = halves_[current_].memory.data() + used_;
  used_ += slot;
  return begin;
}

void staging::enter_other_half(stream_ref stream, std::source_location place) {
  halves_[current_].left->record(stream, place);
  half& next = halves_[1 - current_];
  const bool passed =
      next.left->finished(place) || REPRISE_MUTANT(staging_half_is_rewritten_before_it_was_read);
  if (!passed) {
    ++waits_;
    landmark("staging: waited for a half");
  }
  if (!passed || fault_point("staging: waits for a half that is free")) {
    next.left->synchronize(place);
  }
  if (next.memory.bytes() < wanted_) next.memory = pinned_block{device_, wanted_, place};
  current_ = 1 - current_;
  used_ = 0;
}

std::size_t staging::pinned_bytes() const {
  return halves_[0].memory.bytes() + halves_[1].memory.bytes();
}

}  // namespace reprise
