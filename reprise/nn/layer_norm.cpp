#include "reprise/nn/layer_norm.hpp"

#include <fmt/format.h>

#include "reprise/base/error.hpp"
#include "reprise/kernel/launch.hpp"
#include "reprise/nn/shapes.hpp"
#include "reprise/ops/layer_norm.hpp"
#include "reprise/ops/layer_norm_grad.hpp"

namespace reprise::nn {

namespace {

constexpr const char* row_stats = "mean and inverse deviation";

}  // namespace

layer_norm::layer_norm(parameter& gain, parameter& bias, float eps, const std::string& name)
    : declared_{name},
      x{declared_.in<float>("x", {any, static_cast<std::int64_t>(gain.value.shape.count())})},
      y{declared_.out<float>("y")},
      gain_{&gain},
      bias_{&bias},
      width_{static_cast<std::int64_t>(gain.value.shape.count())},
      eps_{eps},
      trains_gain_{declare(declared_, "gain", gain)},
      trains_bias_{declare(declared_, "bias", bias)} {
  require_shape(gain, {width_}, name, "gain");
  require_shape(bias, {width_}, name, "bias");
  if (trains_gain_ != trains_bias_) {
    throw usage_error{
        fmt::format("layer '{}': of gain and bias only one has a gradient buffer; "
                    "give both of them one, or none",
                    name)};
  }
}

void layer_norm::forward(forward_scope& run) const {
  const dims shape = run.shape(x);
  const write<float> to{run.make(y, shape)};
  const write<float> stats{run.save<float>(row_stats, {shape[0], 2})};
  launch(run, layer_norm_saving, read<float>{run[x]}, read<float>{values_of(*gain_)},
         read<float>{values_of(*bias_)}, to, stats, width_, eps_);
}

void layer_norm::backward(backward_scope& run) const {
  const read<float> dy{run.grad(y)};
  const read<float> from{run.saved(x)};
  const read<float> stats{run.saved<float>(row_stats)};
  if (run.wants(x)) {
    launch(run, layer_norm_input_grad, from, read<float>{values_of(*gain_)}, stats, dy,
           write<float>{run.grad(x)}, width_);
  }
  if (trains_gain_) {
    const delivery gain = run.add_to(*gain_);
    const delivery bias = run.add_to(*bias_);
    launch(run.aside(), layer_norm_weight_grad, from, stats, dy, inout<float>{gain.to},
           inout<float>{bias.to}, read<std::int32_t>{gain.rule}, read<std::int32_t>{bias.rule},
           width_);
  }
}

}  // namespace reprise::nn
