// bias_add on CUDA: a thread per element.
#include "reprise/cuda/call.cuh"
#include "reprise/ops/bias_add.hpp"
#include "reprise/ops/elementwise.cuh"
#include "reprise/ops/math.hpp"

namespace reprise::REPRISE_BODIES::ops {

namespace {

struct biased_element {
  read<float> x;
  read<float> bias;
  write<float> out;
  __device__ void operator()(std::size_t i) const {
    out.data()[i] = math::add(x.data()[i], bias.data()[i % bias.size()]);
  }
};

}  // namespace

void bias_add_cuda(cuda_call& call, read<float> x, read<float> bias, write<float> out) {
  bias_add_rows(x.size(), bias.size(), out.size());
  elementwise(call, x.size(), biased_element{x, bias, out});
}

}  // namespace reprise::REPRISE_BODIES::ops
