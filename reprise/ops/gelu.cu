// gelu on CUDA: a thread per element.
#include "reprise/cuda/call.cuh"
#include "reprise/ops/elementwise.cuh"
#include "reprise/ops/gelu.hpp"

namespace reprise::REPRISE_BODIES::ops {

namespace {

struct gelu_element {
  read<float> x;
  write<float> out;
  __device__ void operator()(std::size_t i) const { out.data()[i] = gelu_of<float>(x.data()[i]); }
};

}  // namespace

void gelu_cuda(cuda_call& call, read<float> x, write<float> out) {
  check_gelu(x.size(), out.size());
  elementwise(call, x.size(), gelu_element{x, out});
}

}  // namespace reprise::REPRISE_BODIES::ops
