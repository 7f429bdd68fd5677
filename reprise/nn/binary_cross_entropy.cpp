#include "reprise/nn/binary_cross_entropy.hpp"

#include "reprise/kernel/launch.hpp"
#include "reprise/nn/shapes.hpp"
#include "reprise/ops/binary_cross_entropy.hpp"

namespace reprise::nn {

binary_cross_entropy::binary_cross_entropy(const std::string& name)
    : declared_{name},
      logits{declared_.in<float>("logits", any_rows)},
      targets{declared_.in<float>("targets", any_rows)},
      loss{declared_.out<float>("loss")} {
  declared_.same_work_as("nn::binary_cross_entropy");
}

void binary_cross_entropy::forward(forward_scope& run) const {
  launch(run, reprise::binary_cross_entropy, read<float>{run[logits]}, read<float>{run[targets]},
         write<float>{run.make(loss, {1})});
}

void binary_cross_entropy::backward(backward_scope& run) const {
  const read<float> from{run.saved(logits)};
  const read<float> dloss{run.grad(loss)};
  if (run.wants(logits)) {
    launch(run, binary_cross_entropy_grad, from, read<float>{run.saved(targets)}, dloss,
           write<float>{run.grad(logits)});
  }
  if (run.wants(targets)) {
    launch(run, binary_cross_entropy_target_grad, from, dloss, write<float>{run.grad(targets)});
  }
}

}  // namespace reprise::nn
