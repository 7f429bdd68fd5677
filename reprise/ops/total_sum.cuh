// The sum of total_sum.hpp on CUDA: a block of 1024 threads for each 4096 elements, then one block
// for their sums.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "reprise/cuda/call.cuh"
#include "reprise/ops/math.hpp"
#include "reprise/ops/slot_sum.cuh"
#include "reprise/ops/total_sum.hpp"

namespace reprise::REPRISE_BODIES::ops {

template <class T, class Term>
__global__ void __launch_bounds__(total_slots)
    chunk_totals(Term term, std::int64_t elements, T* sums) {
  const std::int64_t begin = blockIdx.x * total_chunk;
  const std::int64_t left = elements - begin;
  const T sum = block_sum<T>(left < total_chunk ? left : total_chunk,
                             [&](std::int64_t l) { return term(begin + l); });
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

template <class T, class Put>
__global__ void __launch_bounds__(total_slots)
    total_of_chunks(const T* sums, std::int64_t chunks, Put put) {
  const T sum = block_sum<T>(chunks, [&](std::int64_t chunk) { return sums[chunk]; });
  if (threadIdx.x == 0) put(sum);
}

// One thread puts the sum of term(i) for i below `elements`; both are structs with a __device__
// operator. The call's workspace is the total_workspace<T> of them.
template <class T = float, class Term, class Put>
void total_sum(cuda_call& call, std::size_t elements, const Term& term, const Put& put) {
  auto* const sums = reinterpret_cast<T*>(call.workspace().data());
  const std::int64_t chunks = total_chunks(elements);
  if (chunks > 0) {
    const auto blocks = static_cast<unsigned>(chunks);
    chunk_totals<<<blocks, total_slots, 0, call.stream()>>>(
        term, static_cast<std::int64_t>(elements), sums);
  }
  total_of_chunks<<<1, total_slots, 0, call.stream()>>>(static_cast<const T*>(sums), chunks, put);
}

// Of a loss: the mean of `elements`, 0 of none.
struct put_mean {
  write<float> loss;
  std::size_t elements;
  __device__ void operator()(float sum) const {
    loss.data()[0] = elements == 0 ? 0.0f : math::div(sum, static_cast<float>(elements));
  }
};

}  // namespace reprise::REPRISE_BODIES::ops
