#include "reprise/nn/dropout.hpp"

#include <fmt/format.h>

#include "reprise/base/error.hpp"
#include "reprise/kernel/launch.hpp"
#include "reprise/nn/shapes.hpp"
#include "reprise/ops/dropout.hpp"
#include "reprise/ops/random_uniform.hpp"

namespace reprise::nn {

namespace {

// What the forward does to x and the backward to dy, whichever of the two scopes runs it.
template <class Scope>
void drop(Scope& run, view<const float> from, view<float> to, float rate) {
  if (rate == 0) {
    copy(run, read<float>{from}, write<float>{to});
    return;
  }
  const random_base base = run.draws(uniform_draws(from.size()));
  launch(run, reprise::dropout, read<float>{from}, read<std::uint64_t>{base.words},
         write<float>{to}, base.offset, rate);
}

}  // namespace

dropout::dropout(float rate, philox_counter& counter, const std::string& name)
    : declared_{name},
      x{declared_.in<float>("x", any_rows)},
      y{declared_.out<float>("y")},
      rate_{rate} {
  if (!(rate >= 0 && rate < 1)) {
    throw usage_error{fmt::format(
        "layer '{}': its rate is {}; give one of 0 at least and less than 1", name, rate)};
  }
  if (rate != 0) declared_.random(counter);
}

void dropout::forward(forward_scope& run) const {
  drop(run, run[x], run.make(y, run.shape(x)), rate_);
}

void dropout::backward(backward_scope& run) const {
  if (run.wants(x)) drop(run, run.grad(y), run.grad(x), rate_);
}

}  // namespace reprise::nn
