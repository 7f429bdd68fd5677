// moving_average on CUDA: a thread per element.
#include "reprise/cuda/call.cuh"
#include "reprise/ops/elementwise.cuh"
#include "reprise/ops/moving_average.hpp"

namespace reprise::REPRISE_BODIES::ops {

namespace {

struct average_element {
  read<float> words, value;
  inout<float> average;
  __device__ void operator()(std::size_t i) const {
    average.data()[i] = averaged(words.data()[0], average.data()[i], value.data()[i]);
  }
};

}  // namespace

void moving_average_cuda(cuda_call& call, read<float> words, read<float> value,
                         inout<float> average) {
  check_moving_average(words.size(), value.size(), average.size());
  elementwise(call, average.size(), average_element{words, value, average});
}

}  // namespace reprise::REPRISE_BODIES::ops
