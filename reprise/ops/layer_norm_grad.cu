// The backward of layer_norm on CUDA, with nothing behind it: layer_norm.cuh has the kernels.
#include "reprise/ops/layer_norm_grad.hpp"

#include "reprise/ops/layer_norm.cuh"

namespace reprise::REPRISE_BODIES::ops {

void layer_norm_input_grad_cuda(cuda_call& call, read<float> x, read<float> gain, read<float> stats,
                                read<float> dy, write<float> dx, std::int64_t width) {
  const std::int64_t rows =
      layer_norm_input_grad_rows(x.size(), gain.size(), stats.size(), dy.size(), dx.size(), width);
  launch_norm_input_grad<norm_alone>(
      call, {x.data(), gain.data(), nullptr, stats.data(), dy.data(), rows, width}, dx);
}

void layer_norm_weight_grad_cuda(cuda_call& call, read<float> x, read<float> stats, read<float> dy,
                                 inout<float> dgain, inout<float> dbias,
                                 read<std::int32_t> gain_rule, read<std::int32_t> bias_rule,
                                 std::int64_t width) {
  const std::int64_t rows =
      layer_norm_weight_grad_rows(x.size(), stats.size(), dy.size(), dgain.size(), dbias.size(),
                                  gain_rule.size(), bias_rule.size(), width);
  launch_norm_weight_grad<norm_alone>(
      call, {x.data(), nullptr, nullptr, stats.data(), dy.data(), rows, width},
      {dgain.data(), dbias.data(), gain_rule.data(), bias_rule.data()});
}

}  // namespace reprise::REPRISE_BODIES::ops
