// silu and its gradient on CUDA: a thread per element.
#include "reprise/cuda/call.cuh"
#include "reprise/ops/elementwise.cuh"
#include "reprise/ops/silu.hpp"

namespace reprise::REPRISE_BODIES::ops {

namespace {

struct silu_element {
  read<float> x;
  write<float> y;
  __device__ void operator()(std::size_t i) const { y.data()[i] = silu_value{}(x.data()[i]); }
};

struct silu_grad_element {
  read<float> x, dy;
  write<float> dx;
  __device__ void operator()(std::size_t i) const {
    dx.data()[i] = silu_gradient{}(x.data()[i], dy.data()[i]);
  }
};

}  // namespace

void silu_cuda(cuda_call& call, read<float> x, write<float> y) {
  check_silu(x.size(), y.size());
  elementwise(call, x.size(), silu_element{x, y});
}

void silu_grad_cuda(cuda_call& call, read<float> x, read<float> dy, write<float> dx) {
  check_silu_grad(x.size(), dy.size(), dx.size());
  elementwise(call, x.size(), silu_grad_element{x, dy, dx});
}

}  // namespace reprise::REPRISE_BODIES::ops
