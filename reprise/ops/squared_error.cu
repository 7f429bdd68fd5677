// squared_error on CUDA: a total over all elements; its gradient, a thread per element.
#include "reprise/cuda/call.cuh"
#include "reprise/ops/elementwise.cuh"
#include "reprise/ops/squared_error.hpp"
#include "reprise/ops/total_sum.cuh"

namespace reprise::REPRISE_BODIES::ops {

namespace {

struct squared_term {
  read<float> x, target;
  __device__ float operator()(std::int64_t i) const {
    return squared_off(x.data()[i], target.data()[i]);
  }
};

struct error_element {
  read<float> x, target, dloss;
  write<float> dx;
  __device__ void operator()(std::size_t i) const {
    dx.data()[i] =
        math::mul(math::sub(x.data()[i], target.data()[i]), error_scale(dloss.data()[0], x.size()));
  }
};

}  // namespace

void squared_error_cuda(cuda_call& call, read<float> x, read<float> target, write<float> loss) {
  check_squared_error(x.size(), target.size(), loss.size());
  total_sum(call, x.size(), squared_term{x, target}, put_mean{loss, x.size()});
}

void squared_error_grad_cuda(cuda_call& call, read<float> x, read<float> target, read<float> dloss,
                             write<float> dx) {
  check_squared_error_grad(x.size(), target.size(), dloss.size(), dx.size());
  elementwise(call, x.size(), error_element{x, target, dloss, dx});
}

}  // namespace reprise::REPRISE_BODIES::ops
