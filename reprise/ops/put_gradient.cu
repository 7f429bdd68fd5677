// put_gradient on CUDA: a thread per element; nothing is launched for `leave`.
#include "reprise/cuda/call.cuh"
#include "reprise/ops/elementwise.cuh"
#include "reprise/ops/put_gradient.hpp"
#include "reprise/ops/put_sum.cuh"

namespace reprise::REPRISE_BODIES::ops {

namespace {

struct put_element {
  read<float> sum;
  inout<float> grad;
  gradient_rule rule;
  __device__ void operator()(std::size_t i) const { put_sum(rule, sum.data()[i], grad.data()[i]); }
};

}  // namespace

void put_gradient_cuda(cuda_call& call, read<float> sum, inout<float> grad, gradient_rule rule) {
  check_put_gradient(sum.size(), grad.size());
  if (rule != gradient_rule::write && rule != gradient_rule::add) return;
  elementwise(call, sum.size(), put_element{sum, grad, rule});
}

}  // namespace reprise::REPRISE_BODIES::ops
