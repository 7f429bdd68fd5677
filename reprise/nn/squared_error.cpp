#include "reprise/nn/squared_error.hpp"

#include "reprise/kernel/launch.hpp"
#include "reprise/nn/shapes.hpp"
#include "reprise/ops/squared_error.hpp"

namespace reprise::nn {

squared_error::squared_error(const std::string& name)
    : declared_{name},
      x{declared_.in<float>("x", any_rows)},
      target{declared_.in<float>("target", any_rows)},
      loss{declared_.out<float>("loss")} {
  declared_.same_work_as("nn::squared_error");
}

void squared_error::forward(forward_scope& run) const {
  launch(run, reprise::squared_error, read<float>{run[x]}, read<float>{run[target]},
         write<float>{run.make(loss, {1})});
}

void squared_error::backward(backward_scope& run) const {
  const read<float> from{run.saved(x)};
  const read<float> to{run.saved(target)};
  const read<float> dloss{run.grad(loss)};
  if (run.wants(x)) {
    launch(run, squared_error_grad, from, to, dloss, write<float>{run.grad(x)});
  }
  // The error is even in the difference: seen from the target, the two change places.
  if (run.wants(target)) {
    launch(run, squared_error_grad, to, from, dloss, write<float>{run.grad(target)});
  }
}

}  // namespace reprise::nn
