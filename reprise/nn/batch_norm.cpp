#include "reprise/nn/batch_norm.hpp"

#include <fmt/format.h>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/kernel/launch.hpp"
#include "reprise/nn/shapes.hpp"
#include "reprise/ops/batch_norm.hpp"
#include "reprise/ops/batch_norm_grad.hpp"

namespace reprise::nn {

namespace {

constexpr const char* batch_stats = "means and inverse deviations";

}  // namespace

batch_norm::batch_norm(parameter& gain, parameter& bias, const running_stats& stats,
                       const batch_norm_options& options, const std::string& name)
    : declared_{name},
      x{declared_.in<float>("x", {any, stats.width()})},
      y{declared_.out<float>("y")},
      gain_{&gain},
      bias_{&bias},
      running_{stats.all()},
      width_{stats.width()},
      options_{options},
      trains_{declare(declared_, "gain", gain)} {
  const bool trains_bias = declare(declared_, "bias", bias);
  if (trains_ != trains_bias) {
    throw usage_error{
        fmt::format("layer '{}': of gain and bias only one has a gradient buffer; "
                    "give both of them one, or none",
                    name)};
  }
  if (!(options.momentum >= 0 && options.momentum <= 1)) {
    throw usage_error{
        fmt::format("layer '{}': its momentum is {}; give one of 0 at least and 1 at "
                    "most",
                    name, options.momentum)};
  }
  static_cast<void>(in_inference());  // refuses shapes and an eps
  const tensor_ref moved = as_tensor(running_, {2, width_});
  if (REPRISE_MUTANT(running_statistics_are_not_put_back)) {
    declared_.overwrites("running statistics", moved);
  } else {
    declared_.state("running statistics", moved);
  }
}

frozen_batch_norm batch_norm::in_inference() const {
  return {*gain_, *bias_, running_, options_.eps, declared_.name()};
}

void batch_norm::forward(forward_scope& run) const {
  const dims shape = run.shape(x);
  if (shape[0] < 2) {
    throw usage_error{fmt::format(
        "layer '{}': its batch has {} rows, and a variance is of 2 at least; give more, "
        "or run it in inference",
        declared_.name(), shape[0])};
  }
  const write<float> to{run.make(y, shape)};
  const write<float> stats{run.save<float>(batch_stats, {2, width_})};
  launch(run, reprise::batch_norm, read<float>{run[x]}, read<float>{values_of(*gain_)},
         read<float>{values_of(*bias_)}, inout<float>{running_}, to, stats, width_, options_.eps,
         options_.momentum);
}

void batch_norm::backward(backward_scope& run) const {
  if (!trains_ && !run.wants(x)) return;
  const read<float> dy{run.grad(y)};
  const read<float> from{run.saved(x)};
  const read<float> stats{run.saved<float>(batch_stats)};
  const view<float> sums = run.scratch<float>({2, width_});
  const delivery gain = trains_ ? run.add_to(*gain_) : delivery{};
  const delivery bias = trains_ ? run.add_to(*bias_) : delivery{};
  launch(run, batch_norm_weight_grad, from, stats, dy, write<float>{sums}, inout<float>{gain.to},
         inout<float>{bias.to}, read<std::int32_t>{gain.rule}, read<std::int32_t>{bias.rule},
         width_);
  if (run.wants(x)) {
    launch(run, batch_norm_input_grad, from, read<float>{values_of(*gain_)}, stats,
           read<float>{sums}, dy, write<float>{run.grad(x)}, width_);
  }
}

}  // namespace reprise::nn
