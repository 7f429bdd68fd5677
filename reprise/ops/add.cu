// add on CUDA: a thread per element.
#include "reprise/cuda/call.cuh"
#include "reprise/ops/add.hpp"
#include "reprise/ops/elementwise.cuh"
#include "reprise/ops/math.hpp"

namespace reprise::REPRISE_BODIES::ops {

namespace {

struct sum_element {
  read<float> a, b;
  write<float> y;
  __device__ void operator()(std::size_t i) const {
    y.data()[i] = math::add(a.data()[i], b.data()[i]);
  }
};

}  // namespace

void add_cuda(cuda_call& call, read<float> a, read<float> b, write<float> y) {
  check_add(a.size(), b.size(), y.size());
  elementwise(call, a.size(), sum_element{a, b, y});
}

}  // namespace reprise::REPRISE_BODIES::ops
