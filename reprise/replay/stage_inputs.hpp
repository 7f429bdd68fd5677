// stage_inputs: the first node of a recording; brings the inputs of a replay out of pinned memory.
//
// The host writes the inputs of replay n into slot n % slots of a ring and launches; no copy is
// enqueued and no event recorded. The kernel keeps its own count of replays, so each finds its
// slot, and tells the host when the slot has been read.
//
//   ring [slots, slot_bytes], u8, pinned: in each slot a u64 whose bit i says that segment i is
//     there, stage_masks times, stage_mask_apart bytes apart; padding to stage_header_bytes; then
//     the segments as they lie in `block`
//   block, u8: segment i goes to [offset_i, offset_i + bytes_i), and no other byte is written but
//     padding to 16
//   words [2 + 2 segments], u64: replays so far, blocks that are done (0), then offset_i and
//   bytes_i
//     ascending; each offset is a multiple of 16, and segments that have bytes lie 16 apart at
//     least
//   consumed [1], u64, pinned: replays whose slot has been read
//
// Reads whole units of 16 bytes, into the padding behind a segment. One launch at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/kernel/kernel.hpp"

namespace reprise::REPRISE_BODIES {

// Of a block of `bytes`. Each block of the CUDA body has a mask of its own: those who ask the host
// for the same line are answered one by one, a microsecond each (measured on an H200).
inline constexpr std::size_t stage_mask_apart = 128;
constexpr std::size_t stage_masks(std::size_t bytes) {
  constexpr std::size_t brought_by_each = 4096, most = 128;
  const std::size_t wanted = (bytes + brought_by_each - 1) / brought_by_each;
  return wanted == 0 ? 1 : wanted < most ? wanted : most;
}
constexpr std::size_t stage_header_bytes(std::size_t bytes) {
  const std::size_t masks = stage_masks(bytes) * stage_mask_apart;
  return masks < 256 ? 256 : masks;
}

inline constexpr kernel<void(read<std::uint8_t> ring, write<std::uint8_t> block,
                             inout<std::uint64_t> words, write<std::uint64_t> consumed,
                             std::uint64_t slot_bytes, std::uint64_t slots, std::uint64_t segments)>
    stage_inputs{"stage_inputs"};

void add_stage_inputs(kernel_registry& registry);

void stage_inputs_cpu(cpu_call&, read<std::uint8_t> ring, write<std::uint8_t> block,
                      inout<std::uint64_t> words, write<std::uint64_t> consumed,
                      std::uint64_t slot_bytes, std::uint64_t slots, std::uint64_t segments);
void stage_inputs_cuda(cuda_call&, read<std::uint8_t> ring, write<std::uint8_t> block,
                       inout<std::uint64_t> words, write<std::uint64_t> consumed,
                       std::uint64_t slot_bytes, std::uint64_t slots, std::uint64_t segments);

}  // namespace reprise::REPRISE_BODIES

#if !defined(REPRISE_CHECKED)
namespace reprise::checked {

void add_stage_inputs(kernel_registry& registry);  // its checked body

}  // namespace reprise::checked
#endif
