// sdm_weights: what each event of a chunk weighs, from the decays on its slot.
//
//   k_val [P, T, W], g [P, T, G], q_val [P, T, R], order and runs of sdm_order;
//   level, head, tail [P, N, E] by event, keep [P, N, E] by run; X is f32 or f64
//
// With L the running sum of max(g, -1000) over the writes of a run, in f64, a write's own included
// (number.hpp):
//   level = L at the event; a read has that of the writes before it
//   head  = k e^L of a write, c e^L of a read: what the row before the chunk weighs in it
//   tail  = k e^(L at the run's end - L) of a write: what its delta weighs in the row behind the
//           chunk; 0 of a read
//   keep  = e^(L at the run's end): what the row before the chunk weighs in the row behind it
// What is left out, and what no run is behind, has 0.
#pragma once

#include <cstdint>

#include "reprise/kernel/kernel.hpp"
#include "reprise/sdm/sizes.hpp"

namespace reprise::REPRISE_BODIES {

template <class X>
inline constexpr kernel<void(read<std::int32_t> order, read<std::int32_t> runs, read<X> k_val,
                             read<X> g, read<X> q_val, write<double> level, write<X> head,
                             write<X> tail, write<X> keep, sdm_sizes)>
    sdm_weights{"sdm_weights"};

void add_sdm_weights(kernel_registry& registry);

namespace sdm {

template <class X>
void weights_cpu(cpu_call&, read<std::int32_t> order, read<std::int32_t> runs, read<X> k_val,
                 read<X> g, read<X> q_val, write<double> level, write<X> head, write<X> tail,
                 write<X> keep, sdm_sizes sizes);
template <class X>
void weights_cuda(cuda_call&, read<std::int32_t> order, read<std::int32_t> runs, read<X> k_val,
                  read<X> g, read<X> q_val, write<double> level, write<X> head, write<X> tail,
                  write<X> keep, sdm_sizes sizes);

// Throws usage_error when sizes do not fit.
template <class X>
void check_weights(read<std::int32_t> order, read<std::int32_t> runs, read<X> k_val, read<X> g,
                   read<X> q_val, write<double> level, write<X> head, write<X> tail, write<X> keep,
                   const sdm_sizes& sizes);

}  // namespace sdm

}  // namespace reprise::REPRISE_BODIES
