// layer_norm on CUDA, with stats or without, and nothing behind it: layer_norm.cuh has the kernels.
#include "reprise/ops/layer_norm.hpp"

#include "reprise/ops/layer_norm.cuh"

namespace reprise::REPRISE_BODIES::ops {

void layer_norm_cuda(cuda_call& call, read<float> x, read<float> gain, read<float> bias,
                     write<float> y, std::int64_t width, float eps) {
  const std::int64_t rows =
      layer_norm_rows("layer_norm", x.size(), gain.size(), bias.size(), y.size(), width);
  launch_norm<norm_alone>(call, rows, x, gain, bias, y, nullptr, width, eps);
}

void layer_norm_saving_cuda(cuda_call& call, read<float> x, read<float> gain, read<float> bias,
                            write<float> y, write<float> stats, std::int64_t width, float eps) {
  const std::int64_t rows =
      layer_norm_saving_rows(x.size(), gain.size(), bias.size(), y.size(), stats.size(), width);
  launch_norm<norm_alone>(call, rows, x, gain, bias, y, stats.data(), width, eps);
}

}  // namespace reprise::REPRISE_BODIES::ops
