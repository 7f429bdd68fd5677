// The CUDA body of scale: one thread an element. It only enqueues.
#include <reprise/cuda/call.cuh>

#include "scale.hpp"

namespace consumer::REPRISE_BODIES {

namespace {

constexpr unsigned threads = 256;

__global__ void scale_grid(read<float> x, write<float> y, float factor) {
  const std::size_t i = std::size_t{blockIdx.x} * threads + threadIdx.x;
  if (i < y.size()) y[i] = factor * x[i];
}

}  // namespace

void scale_cuda(reprise::cuda_call& call, read<float> x, write<float> y, float factor) {
  if (y.size() == 0) return;
  const auto blocks = static_cast<unsigned>((y.size() + threads - 1) / threads);
  scale_grid<<<blocks, threads, 0, call.stream()>>>(x, y, factor);
}

}  // namespace consumer::REPRISE_BODIES
