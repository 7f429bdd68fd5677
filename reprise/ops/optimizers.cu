// The updates of optimizers.hpp on CUDA: a thread per element. The words are read by each thread;
// they come from L2 once a block.
#include "reprise/cuda/call.cuh"
#include "reprise/ops/elementwise.cuh"
#include "reprise/ops/optimizers.hpp"

namespace reprise::REPRISE_BODIES::ops {

namespace {

struct sgd_element {
  read<float> words, grad;
  inout<float> velocity, weight;
  __device__ void operator()(std::size_t i) const {
    const sgd_words by = sgd_words::at(words.data());
    const float before = weight.data()[i];
    float along = by.decayed(grad.data()[i], before);
    if (velocity.size() != 0) {
      along = by.faster(velocity.data()[i], along);
      velocity.data()[i] = along;
    }
    weight.data()[i] = by.moved(before, along);
  }
};

struct adamw_element {
  read<float> words, grad;
  inout<float> m, v, weight;
  __device__ void operator()(std::size_t i) const {
    const adamw_words by = adamw_words::at(words.data());
    const float g = grad.data()[i];
    const float first = adamw_words::seen(by.beta1, m.data()[i], g);
    const float second = adamw_words::seen(by.beta2, v.data()[i], math::mul(g, g));
    m.data()[i] = first;
    v.data()[i] = second;
    weight.data()[i] = by.moved(weight.data()[i], first, second);
  }
};

}  // namespace

void sgd_cuda(cuda_call& call, read<float> words, read<float> grad, inout<float> velocity,
              inout<float> weight) {
  check_sgd(words.size(), grad.size(), velocity.size(), weight.size());
  elementwise(call, weight.size(), sgd_element{words, grad, velocity, weight});
}

void adamw_cuda(cuda_call& call, read<float> words, read<float> grad, inout<float> m,
                inout<float> v, inout<float> weight) {
  check_adamw(words.size(), grad.size(), m.size(), v.size(), weight.size());
  elementwise(call, weight.size(), adamw_element{words, grad, m, v, weight});
}

}  // namespace reprise::REPRISE_BODIES::ops
