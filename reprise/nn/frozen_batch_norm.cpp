#include "reprise/nn/frozen_batch_norm.hpp"

#include <fmt/format.h>

#include "reprise/base/error.hpp"
#include "reprise/kernel/launch.hpp"
#include "reprise/nn/shapes.hpp"
#include "reprise/ops/batch_norm.hpp"
#include "reprise/ops/batch_norm_grad.hpp"

namespace reprise::nn {

frozen_batch_norm::frozen_batch_norm(parameter& gain, parameter& bias, const running_stats& stats,
                                     float eps, const std::string& name)
    : frozen_batch_norm{gain, bias, stats.all(), eps, name} {}

frozen_batch_norm::frozen_batch_norm(parameter& gain, parameter& bias, view<float> running,
                                     float eps, const std::string& name)
    : declared_{name},
      x{declared_.in<float>("x", {any, static_cast<std::int64_t>(running.size() / 2)})},
      y{declared_.out<float>("y")},
      gain_{&gain},
      bias_{&bias},
      running_{running},
      width_{static_cast<std::int64_t>(running.size() / 2)},
      eps_{eps} {
  require_shape(gain, {width_}, name, "gain");
  require_shape(bias, {width_}, name, "bias");
  if (!(eps > 0)) {
    throw usage_error{
        fmt::format("layer '{}': an eps of {} may divide by zero; give one over 0", name, eps)};
  }
  // As those that are trained: a recording reads what an update has made of them, and is kept.
  declare(declared_, "gain", gain);
  declare(declared_, "bias", bias);
}

void frozen_batch_norm::forward(forward_scope& run) const {
  launch(run, reprise::frozen_batch_norm, read<float>{run[x]}, read<float>{values_of(*gain_)},
         read<float>{values_of(*bias_)}, read<float>{running_},
         write<float>{run.make(y, run.shape(x))}, width_, eps_);
}

void frozen_batch_norm::backward(backward_scope& run) const {
  if (!run.wants(x)) return;
  launch(run, frozen_batch_norm_grad, read<float>{values_of(*gain_)}, read<float>{running_},
         read<float>{run.grad(y)}, write<float>{run.grad(x)}, width_, eps_);
}

}  // namespace reprise::nn
