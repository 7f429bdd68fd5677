// sdm_order: which events of a chunk are on one slot, for all chunks at once.
//
//   k_idx [P, T, W], q_idx [P, T, R]; what is written is [P, N, E], runs [P, N, E + 1] (sizes.hpp)
//
//   order    the chunk's events by (slot, time); behind the last, -1
//   place    by event: its position in `order`; -1: it is left out
//   run_of   by event: its run; -1: it is left out
//   runs     run r is positions [runs[r], runs[r + 1]) of `order`; runs behind the last are empty
//   rows     by run: its row of the bank; behind the last, -1
//   written  by run: how many runs before it have a write, and -1 when it has none itself: where
//            its row is saved
//
// Runs are in the order of their slots. Integers alone: the same on every device.
#pragma once

#include <cstdint>

#include "reprise/kernel/kernel.hpp"
#include "reprise/sdm/sizes.hpp"

namespace reprise::REPRISE_BODIES {

inline constexpr kernel<void(read<std::int32_t> k_idx, read<std::int32_t> q_idx,
                             write<std::int32_t> order, write<std::int32_t> place,
                             write<std::int32_t> run_of, write<std::int32_t> runs,
                             write<std::int32_t> rows, write<std::int32_t> written, sdm_sizes)>
    sdm_order{"sdm_order"};

void add_sdm_order(kernel_registry& registry);

namespace sdm {

void order_cpu(cpu_call&, read<std::int32_t> k_idx, read<std::int32_t> q_idx,
               write<std::int32_t> order, write<std::int32_t> place, write<std::int32_t> run_of,
               write<std::int32_t> runs, write<std::int32_t> rows, write<std::int32_t> written,
               sdm_sizes sizes);
void order_cuda(cuda_call&, read<std::int32_t> k_idx, read<std::int32_t> q_idx,
                write<std::int32_t> order, write<std::int32_t> place, write<std::int32_t> run_of,
                write<std::int32_t> runs, write<std::int32_t> rows, write<std::int32_t> written,
                sdm_sizes sizes);

// Throws usage_error when sizes do not fit.
void check_order(read<std::int32_t> k_idx, read<std::int32_t> q_idx, write<std::int32_t> order,
                 write<std::int32_t> place, write<std::int32_t> run_of, write<std::int32_t> runs,
                 write<std::int32_t> rows, write<std::int32_t> written, const sdm_sizes& sizes);

}  // namespace sdm

}  // namespace reprise::REPRISE_BODIES
