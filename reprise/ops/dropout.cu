// dropout on CUDA: a thread per draw, four elements each.
#include "reprise/cuda/call.cuh"
#include "reprise/ops/dropout.hpp"
#include "reprise/ops/elementwise.cuh"

namespace reprise::REPRISE_BODIES::ops {

namespace {

struct dropped_draw {
  read<float> x;
  read<std::uint64_t> base;
  write<float> y;
  std::uint64_t offset;
  float rate;
  float factor;
  __device__ void operator()(std::size_t draw) const {
    const philox_words words = philox(base.data()[0], base.data()[1] + offset + draw, 0);
#pragma unroll
    for (std::size_t i = 0; i != 4; ++i) {
      const std::size_t at = 4 * draw + i;
      if (at < x.size()) y.data()[at] = kept_or_zero(x.data()[at], words.at[i], rate, factor);
    }
  }
};

}  // namespace

void dropout_cuda(cuda_call& call, read<float> x, read<std::uint64_t> base, write<float> y,
                  std::uint64_t offset, float rate) {
  const float factor = dropout_factor(x.size(), base.size(), y.size(), rate);
  elementwise(call, uniform_draws(x.size()), dropped_draw{x, base, y, offset, rate, factor});
}

}  // namespace reprise::REPRISE_BODIES::ops
