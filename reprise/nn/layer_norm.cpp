#include "reprise/nn/layer_norm.hpp"

#include <fmt/format.h>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/kernel/launch.hpp"
#include "reprise/nn/shapes.hpp"
#include "reprise/ops/layer_norm.hpp"
#include "reprise/ops/layer_norm_gelu.hpp"
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

layer_norm::layer_norm(parameter& gain, parameter& bias, const layer_norm_options& options)
    : layer_norm{gain, bias, options.eps, options.name} {
  then_ = options.then;
}

void layer_norm::forward(forward_scope& run) const {
  const dims shape = run.shape(x);
  const write<float> to{run.make(y, shape)};
  const write<float> stats{run.save<float>(row_stats, {shape[0], 2})};
  const auto form = [&](const auto& kernel) {
    launch(run, kernel, read<float>{run[x]}, read<float>{values_of(*gain_)},
           read<float>{values_of(*bias_)}, to, stats, width_, eps_);
  };
  if (then_ == activation::gelu) {
    form(layer_norm_gelu_saving);
  } else {
    form(layer_norm_saving);
  }
}

void layer_norm::backward(backward_scope& run) const {
  const read<float> dy{run.grad(y)};
  const read<float> from{run.saved(x)};
  const read<float> stats{run.saved<float>(row_stats)};
  const bool through_gelu =
      then_ == activation::gelu && !REPRISE_MUTANT(layer_norm_goes_back_past_its_gelu);
  const read<float> gain{values_of(*gain_)};
  const read<float> bias{values_of(*bias_)};
  if (run.wants(x)) {
    const write<float> dx{run.grad(x)};
    if (through_gelu) {
      launch(run, layer_norm_gelu_input_grad, from, gain, bias, stats, dy, dx, width_);
    } else {
      launch(run, layer_norm_input_grad, from, gain, stats, dy, dx, width_);
    }
  }
  if (!trains_gain_) return;
  const delivery to_gain = run.add_to(*gain_);
  const delivery to_bias = run.add_to(*bias_);
  const inout<float> dgain{to_gain.to};
  const inout<float> dbias{to_bias.to};
  const read<std::int32_t> gain_rule{to_gain.rule};
  const read<std::int32_t> bias_rule{to_bias.rule};
  if (through_gelu) {
    launch(run.aside(), layer_norm_gelu_weight_grad, from, gain, bias, stats, dy, dgain, dbias,
           gain_rule, bias_rule, width_);
  } else {
    launch(run.aside(), layer_norm_weight_grad, from, stats, dy, dgain, dbias, gain_rule, bias_rule,
           width_);
  }
}

}  // namespace reprise::nn
