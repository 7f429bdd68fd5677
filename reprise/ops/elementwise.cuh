// The launch geometry of CUDA bodies that compute each element on its own: a thread per element.
//
// Made for ops whose spans are small and that are launched many times in a recording, where a
// kernel's latency counts and not its width. Activations, optimizers and put_gradient use it for
// large spans too: a warp's accesses are whole lines there, but a thread has four bytes of each
// operand under way instead of 16, and does its arithmetic on indices for one element instead of
// eight. That costs bandwidth; no traffic, and no bits. Kernels that take eight at a time:
// eight.cuh.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "reprise/base/portable.hpp"
#include "reprise/cuda/call.cuh"

namespace reprise::REPRISE_BODIES::ops {

inline constexpr unsigned elementwise_threads = 256;

template <class F>
__global__ void __launch_bounds__(elementwise_threads) elementwise_grid(std::size_t count, F f) {
  const std::size_t i = blockIdx.x * std::size_t{elementwise_threads} + threadIdx.x;
  if (i < count) f(i);
}

// f(i) for each i below `count`; F is a struct with a __device__ operator.
template <class F>
void elementwise(cuda_call& call, std::size_t count, const F& f) {
  if (count == 0) return;
  const auto blocks =
      static_cast<unsigned>((count + elementwise_threads - 1) / elementwise_threads);
  elementwise_grid<<<blocks, elementwise_threads, 0, call.stream()>>>(count, f);
}

}  // namespace reprise::REPRISE_BODIES::ops
