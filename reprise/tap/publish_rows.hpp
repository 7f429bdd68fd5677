// publish_rows: a producer. Copies rows of a tensor into the ring and says so in one word.
//
// Where to, how much and which rows it reads from the plan words of the step (plan_words.hpp); it
// keeps no position of its own, never waits, and never looks for space: that is the plan's promise.
//
//   source [rows, row_bytes], u8: the tensor that was marked
//   limit [0 or 1], i64: where it is there, the first run is rows [0, limit), clamped
//   plan, u64: descriptors and row tables of this step
//   ring, u8: payloads; a span that crosses the end goes on at the beginning, and ends in zeros up
//     to a multiple of 16
//   publications, u64, pinned: one word for each slot
//   arrivals [1], u64: blocks that are done, 0 between launches; this node's own
//
// The word is written when all bytes are: each block releases its own, the last to arrive acquires
// them and releases the word to the system. Whoever acquires the word finds the bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/kernel/kernel.hpp"
#include "reprise/tap/plan_words.hpp"

namespace reprise::REPRISE_BODIES {

inline constexpr kernel<void(read<std::uint8_t> source, read<std::int64_t> limit,
                             read<std::uint64_t> plan, write<std::uint8_t> ring,
                             write<std::uint64_t> publications, inout<std::uint64_t> arrivals,
                             std::uint64_t index, std::uint64_t point, std::uint64_t row_bytes)>
    publish_rows{"publish_rows"};

void add_publish_rows(kernel_registry& registry);

void publish_rows_cpu(cpu_call&, read<std::uint8_t> source, read<std::int64_t> limit,
                      read<std::uint64_t> plan, write<std::uint8_t> ring,
                      write<std::uint64_t> publications, inout<std::uint64_t> arrivals,
                      std::uint64_t index, std::uint64_t point, std::uint64_t row_bytes);
void publish_rows_cuda(cuda_call&, read<std::uint8_t> source, read<std::int64_t> limit,
                       read<std::uint64_t> plan, write<std::uint8_t> ring,
                       write<std::uint64_t> publications, inout<std::uint64_t> arrivals,
                       std::uint64_t index, std::uint64_t point, std::uint64_t row_bytes);

// What the CPU body does but for its last store: the rows are in the ring, and the word says so.
// 0: this step publishes nothing here.
std::uint64_t rows_in_ring(read<std::uint8_t> source, read<std::int64_t> limit,
                           read<std::uint64_t> plan, write<std::uint8_t> ring, std::uint64_t index,
                           std::uint64_t point, std::uint64_t row_bytes);

}  // namespace reprise::REPRISE_BODIES

#if !defined(REPRISE_CHECKED)
namespace reprise::checked {

void add_publish_rows(kernel_registry& registry);  // its checked body

}  // namespace reprise::checked
#endif
