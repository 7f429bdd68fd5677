// take_rows: a producer. Copies rows of a tensor into the ring, and leaves its publication to
// publish_taken, which runs behind it.
//
// Where to, how much and which rows it reads from the plan words of the step (plan_words.hpp); it
// keeps no position of its own, never waits, and never looks for space: that is the plan's promise.
//
//   source [rows, row_bytes], u8: the tensor that was marked
//   limit [0 or 1], i64: where it is there, the first run is rows [0, limit), clamped
//   plan, u64: descriptors and row tables of this step
//   ring, u8: payloads; a span that crosses the end goes on at the beginning, and ends in zeros up
//     to a multiple of 16
//   taken [1], u64: this node's own; its publication word, where the plan wants rows of it
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/kernel/kernel.hpp"
#include "reprise/tap/plan_words.hpp"

namespace reprise::REPRISE_BODIES {

inline constexpr kernel<void(read<std::uint8_t> source, read<std::int64_t> limit,
                             read<std::uint64_t> plan, write<std::uint8_t> ring,
                             write<std::uint64_t> taken, std::uint64_t index, std::uint64_t point,
                             std::uint64_t row_bytes)>
    take_rows{"take_rows"};

void add_take_rows(kernel_registry& registry);

void take_rows_cpu(cpu_call&, read<std::uint8_t> source, read<std::int64_t> limit,
                   read<std::uint64_t> plan, write<std::uint8_t> ring, write<std::uint64_t> taken,
                   std::uint64_t index, std::uint64_t point, std::uint64_t row_bytes);
void take_rows_cuda(cuda_call&, read<std::uint8_t> source, read<std::int64_t> limit,
                    read<std::uint64_t> plan, write<std::uint8_t> ring, write<std::uint64_t> taken,
                    std::uint64_t index, std::uint64_t point, std::uint64_t row_bytes);

}  // namespace reprise::REPRISE_BODIES

#if !defined(REPRISE_CHECKED)
namespace reprise::checked {

void add_take_rows(kernel_registry& registry);  // its checked body

}  // namespace reprise::checked
#endif
