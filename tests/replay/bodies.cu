// The CUDA bodies of this room's test kernels: one thread does it all, since only the values
// matter.
#include "reprise/cuda/call.cuh"
#include "tests/replay/kernels.hpp"

namespace reprise::test::REPRISE_BODIES {

namespace {

__global__ void scale_grid(read<float> x, write<float> y, float a) {
  const view<const float> from = x.followed();
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = a * from[i];
}

__global__ void add_to_grid(read<float> x, inout<float> to) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += x[i];
}

}  // namespace

void scale_followed_cuda(cuda_call& call, read<float> x, write<float> y, float a) {
  scale_grid<<<1, 1, 0, call.stream()>>>(x, y, a);
}

void scale_here_cuda(cuda_call& call, read<float> x, write<float> y, float a) {
  scale_grid<<<1, 1, 0, call.stream()>>>(x, y, a);
}

void add_to_cuda(cuda_call& call, read<float> x, inout<float> to) {
  add_to_grid<<<1, 1, 0, call.stream()>>>(x, to);
}

}  // namespace reprise::test::REPRISE_BODIES
