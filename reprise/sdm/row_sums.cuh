// Weighed sums of rows of a bank, on CUDA: what sdm_recall and sdm_gather read it with. A warp sums
// a part of 256 columns; a lane eight of them.
//
// Rows are anywhere in memory, so what counts is how many bytes are under way: 8 KiB a warp, before
// the first of them is added.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "reprise/sdm/chunk_place.hpp"
#include "reprise/sdm/eight.cuh"

namespace reprise::REPRISE_BODIES::sdm {

// sum = the sum over `count` rows of weight * row, in their order from 0; an index that is no row
// of stream p is left out. Columns from `at`. By a whole warp.
template <bool Aligned, class B>
__device__ void sum_rows(const chunk_place& c, std::int64_t p, const B* bank,
                         const std::int32_t* index, const float* weight, std::int32_t count,
                         std::int64_t at, float (&sum)[8]) {
  constexpr int batch = 32 / static_cast<int>(sizeof(B));
  const auto lane = static_cast<std::int32_t>(threadIdx.x % 32);
#pragma unroll
  for (int i = 0; i < 8; ++i) sum[i] = 0.0f;
  for (std::int32_t first = 0; first < count; first += 32) {
    // A lane looks up one row for all.
    std::int64_t mine = -1;
    float my_weight = 0.0f;
    if (first + lane < count) {
      mine = index[first + lane];
      my_weight = weight[first + lane];
    }
    const unsigned there = __ballot_sync(all_lanes, c.is_row_of(p, mine));
    const std::int32_t here = min(32, count - first);
    for (std::int32_t begin = 0; begin < here; begin += batch) {
      eight<B> rows[batch];
#pragma unroll
      for (int i = 0; i < batch; ++i) {
        const std::int64_t row = __shfl_sync(all_lanes, mine, begin + i);
        if ((there >> (begin + i) & 1u) != 0) {  // the same for the whole warp
          load_stored<Aligned>(bank + row * c.width, at, c.width, rows[i]);
        }
      }
#pragma unroll
      for (int i = 0; i < batch; ++i) {
        const float by = __shfl_sync(all_lanes, my_weight, begin + i);
        if ((there >> (begin + i) & 1u) == 0) continue;
        float x[8];
        widen_eight(rows[i], x);
#pragma unroll
        for (int j = 0; j < 8; ++j) sum[j] = math::add(sum[j], math::mul(by, x[j]));
      }
    }
  }
}

// A warp to a block: they share nothing, and so spread evenly. One for each token and each of
// `sums` sums, and for each part.
inline dim3 row_sum_blocks(const chunk_place& c, int sums) {
  return {static_cast<unsigned>(c.streams * c.count * sums),
          static_cast<unsigned>(parts_of(c.width))};
}

}  // namespace reprise::REPRISE_BODIES::sdm
