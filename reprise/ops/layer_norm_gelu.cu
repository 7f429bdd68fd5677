// A layer norm with a GELU behind it on CUDA: the kernels of a layer norm, given the activation.
#include "reprise/ops/gelu.hpp"
#include "reprise/ops/layer_norm.cuh"
#include "reprise/ops/layer_norm_gelu.hpp"

namespace reprise::REPRISE_BODIES::ops {

namespace {

struct gelu_behind {
  static constexpr bool reads_normed = true;
  __device__ float value(float normed) const { return gelu_value{}(normed); }
  __device__ float gradient(float normed, float dy) const { return gelu_gradient{}(normed, dy); }
};

}  // namespace

void layer_norm_gelu_saving_cuda(cuda_call& call, read<float> x, read<float> gain, read<float> bias,
                                 write<float> y, write<float> stats, std::int64_t width,
                                 float eps) {
  const std::int64_t rows =
      layer_norm_gelu_rows(x.size(), gain.size(), bias.size(), y.size(), stats.size(), width);
  launch_norm<gelu_behind>(call, rows, x, gain, bias, y, stats.data(), width, eps);
}

void layer_norm_gelu_input_grad_cuda(cuda_call& call, read<float> x, read<float> gain,
                                     read<float> bias, read<float> stats, read<float> dy,
                                     write<float> dx, std::int64_t width) {
  const std::int64_t rows = layer_norm_gelu_input_grad_rows(
      x.size(), gain.size(), bias.size(), stats.size(), dy.size(), dx.size(), width);
  launch_norm_input_grad<gelu_behind>(
      call, {x.data(), gain.data(), bias.data(), stats.data(), dy.data(), rows, width}, dx);
}

void layer_norm_gelu_weight_grad_cuda(cuda_call& call, read<float> x, read<float> gain,
                                      read<float> bias, read<float> stats, read<float> dy,
                                      inout<float> dgain, inout<float> dbias,
                                      read<std::int32_t> gain_rule, read<std::int32_t> bias_rule,
                                      std::int64_t width) {
  const std::int64_t rows = layer_norm_gelu_weight_grad_rows(
      x.size(), gain.size(), bias.size(), stats.size(), dy.size(), dgain.size(), dbias.size(),
      gain_rule.size(), bias_rule.size(), width);
  launch_norm_weight_grad<gelu_behind>(
      call, {x.data(), gain.data(), bias.data(), stats.data(), dy.data(), rows, width},
      {dgain.data(), dbias.data(), gain_rule.data(), bias_rule.data()});
}

}  // namespace reprise::REPRISE_BODIES::ops
