// Sums in slots (slot_sum.hpp) on CUDA: a slot is a lane of a warp, or a thread of a block.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "reprise/ops/math.hpp"
#include "reprise/ops/slot_sum.hpp"

namespace reprise::REPRISE_BODIES::ops {

// Of the 32 slots that the lanes of a whole warp hold: both of a pair compute the same sum, so that
// in the end every lane has that of slot 0.
template <class T>
__device__ T fold_warp(T slot) {
  static_assert(row_slots == 32, "a slot is a lane");
#pragma unroll
  for (int half = 16; half > 0; half /= 2) {
    slot = math::add(slot, __shfl_xor_sync(0xffffffffu, slot, half));
  }
  return slot;
}

// The sum of term(l), a T, for l below `count`, by a block of total_slots threads; only those of
// the first warp have it, the others 0. Once in a kernel.
template <class T = float, class Term>
__device__ T block_sum(std::int64_t count, Term&& term) {
  constexpr int warps = total_slots / 32;
  __shared__ T slots[total_slots];
  T slot = 0;
#pragma unroll 4
  for (std::int64_t l = threadIdx.x; l < count; l += total_slots) slot = math::add(slot, term(l));
  slots[threadIdx.x] = slot;
  __syncthreads();
  if (threadIdx.x >= 32) return 0;
  // The slots of this lane: halving their number pairs w with w + 16 first, so 16 are held.
  T of_warp[warps / 2];
#pragma unroll
  for (int w = 0; w < warps / 2; ++w) {
    of_warp[w] = math::add(slots[w * 32 + threadIdx.x], slots[(w + warps / 2) * 32 + threadIdx.x]);
  }
  return fold_warp(fold_slots<warps / 2>(of_warp));
}

}  // namespace reprise::REPRISE_BODIES::ops
