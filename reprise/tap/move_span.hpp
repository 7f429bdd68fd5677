// move_span: the drain by a kernel: bytes of the ring straight into pinned memory.
//
//   from, to: u8, as many bytes, both at multiples of 16, and a multiple of 16
//
// A few blocks are enough to fill the bus (4 of them store 48 to 51 GB/s to mapped host memory from
// 4 MiB on), so the model keeps the rest of the card. What the copy engine does for long spans,
// this does without its start-up for short ones.
#pragma once

#include <cstddef>

#include "reprise/kernel/kernel.hpp"

namespace reprise::REPRISE_BODIES {

inline constexpr kernel<void(read<std::uint8_t> from, write<std::uint8_t> to)> move_span{
    "move_span"};

void add_move_span(kernel_registry& registry);

void move_span_cpu(cpu_call&, read<std::uint8_t> from, write<std::uint8_t> to);
void move_span_cuda(cuda_call&, read<std::uint8_t> from, write<std::uint8_t> to);

}  // namespace reprise::REPRISE_BODIES

#if !defined(REPRISE_CHECKED)
namespace reprise::checked {

void add_move_span(kernel_registry& registry);  // its checked body

}  // namespace reprise::checked
#endif
