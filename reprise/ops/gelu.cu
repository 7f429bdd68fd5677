// gelu and its gradient on CUDA: a thread per element.
#include "reprise/cuda/call.cuh"
#include "reprise/ops/elementwise.cuh"
#include "reprise/ops/gelu.hpp"

namespace reprise::REPRISE_BODIES::ops {

namespace {

struct gelu_element {
  read<float> x;
  write<float> out;
  __device__ void operator()(std::size_t i) const { out.data()[i] = gelu_value{}(x.data()[i]); }
};

struct gelu_grad_element {
  read<float> x, dy;
  write<float> dx;
  __device__ void operator()(std::size_t i) const {
    dx.data()[i] = gelu_gradient{}(x.data()[i], dy.data()[i]);
  }
};

}  // namespace

void gelu_cuda(cuda_call& call, read<float> x, write<float> out) {
  check_gelu(x.size(), out.size());
  elementwise(call, x.size(), gelu_element{x, out});
}

void gelu_grad_cuda(cuda_call& call, read<float> x, read<float> dy, write<float> dx) {
  check_gelu_grad(x.size(), dy.size(), dx.size());
  elementwise(call, x.size(), gelu_grad_element{x, dy, dx});
}

}  // namespace reprise::REPRISE_BODIES::ops
