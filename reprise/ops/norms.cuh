// The sums over rows of norms.hpp on CUDA: a warp reads 32 neighbouring columns of a row, so that
// every access is a whole line. Called with 32 threads across, one for each column.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "reprise/ops/math.hpp"
#include "reprise/ops/norms.hpp"
#include "reprise/ops/slot_sum.hpp"

namespace reprise::REPRISE_BODIES::ops {

// Behind a barrier: the sum of this thread's column over a chunk, of what each slot has of it.
__device__ inline float fold_chunk(const float (&of_slot)[norm_chunk_slots][32]) {
  float slots[norm_chunk_slots];
#pragma unroll
  for (int s = 0; s < norm_chunk_slots; ++s) slots[s] = of_slot[s][threadIdx.x];
  return fold_slots<norm_chunk_slots>(slots);
}

// The sum of term(chunk) for this thread's column, by a block of row_slots warps, a warp to each
// slot; only the first warp has it, the others 0. `of_slot` is read until the next barrier.
template <class Term>
__device__ float sum_of_chunks(float (&of_slot)[row_slots][32], std::int64_t chunks, Term&& term) {
  float slot = 0.0f;
#pragma unroll 4
  for (std::int64_t chunk = threadIdx.y; chunk < chunks; chunk += row_slots) {
    slot = math::add(slot, term(chunk));
  }
  of_slot[threadIdx.y][threadIdx.x] = slot;
  __syncthreads();
  if (threadIdx.y != 0) return 0.0f;
  float slots[row_slots];
#pragma unroll
  for (int s = 0; s < row_slots; ++s) slots[s] = of_slot[s][threadIdx.x];
  return fold_slots<row_slots>(slots);
}

}  // namespace reprise::REPRISE_BODIES::ops
