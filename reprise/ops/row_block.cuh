// One block of 1024 threads over one long row: how argmax and sample read it, and what they fold.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "reprise/ops/greatest.hpp"

namespace reprise::REPRISE_BODIES::ops {

inline constexpr int row_threads = 1024;
inline constexpr int row_warps = row_threads / 32;
inline constexpr unsigned whole_warp = 0xffffffffu;

// f(index, logit) for each logit of the row, spread over the block; increasing within a thread.
// 16-byte loads, four of them in flight, when the row begins at a multiple of 16 bytes.
template <class F>
__device__ void each_logit(const float* row, std::int64_t width, F&& f) {
  std::int64_t first_left = 0;
  if (reinterpret_cast<std::uintptr_t>(row) % 16 == 0) {
    const std::int64_t fours = width / 4;
    first_left = fours * 4;
#pragma unroll 4
    for (std::int64_t i = threadIdx.x; i < fours; i += row_threads) {
      const float4 four = reinterpret_cast<const float4*>(row)[i];
      const auto at = static_cast<std::int32_t>(4 * i);
      f(at, four.x);
      f(at + 1, four.y);
      f(at + 2, four.z);
      f(at + 3, four.w);
    }
  }
#pragma unroll 4
  for (std::int64_t i = first_left + threadIdx.x; i < width; i += row_threads) {
    f(static_cast<std::int32_t>(i), row[i]);
  }
}

__device__ inline greatest warp_greatest(greatest seen) {
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    greatest other;
    other.value = __shfl_xor_sync(whole_warp, seen.value, step);
    other.index = __shfl_xor_sync(whole_warp, seen.index, step);
    seen.merge(other);
  }
  return seen;
}

// The greatest of the row, the same in every thread.
__device__ inline greatest block_greatest(const float* row, std::int64_t width) {
  __shared__ float values[row_warps];
  __shared__ std::int32_t indices[row_warps];
  greatest seen;
  each_logit(row, width, [&](std::int32_t at, float logit) { seen.see(logit, at); });
  seen = warp_greatest(seen);
  if (threadIdx.x % 32 == 0) {
    values[threadIdx.x / 32] = seen.value;
    indices[threadIdx.x / 32] = seen.index;
  }
  __syncthreads();
  static_assert(row_warps == 32);
  seen.value = values[threadIdx.x % 32];
  seen.index = indices[threadIdx.x % 32];
  return warp_greatest(seen);
}

}  // namespace reprise::REPRISE_BODIES::ops
