// multiply_by on CUDA: a thread per element.
#include "reprise/cuda/call.cuh"
#include "reprise/ops/elementwise.cuh"
#include "reprise/ops/math.hpp"
#include "reprise/ops/multiply_by.hpp"

namespace reprise::REPRISE_BODIES::ops {

namespace {

struct multiplied_element {
  read<float> x;
  write<float> y;
  float factor;
  __device__ void operator()(std::size_t i) const { y.data()[i] = math::mul(factor, x.data()[i]); }
};

}  // namespace

void multiply_by_cuda(cuda_call& call, read<float> x, write<float> y, float factor) {
  check_multiply_by(x.size(), y.size());
  elementwise(call, x.size(), multiplied_element{x, y, factor});
}

}  // namespace reprise::REPRISE_BODIES::ops
