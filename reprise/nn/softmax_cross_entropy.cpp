#include "reprise/nn/softmax_cross_entropy.hpp"

#include "reprise/kernel/launch.hpp"
#include "reprise/nn/shapes.hpp"
#include "reprise/ops/softmax_cross_entropy.hpp"

namespace reprise::nn {

namespace {

constexpr const char* rows_that_count = "rows that count";

}  // namespace

softmax_cross_entropy::softmax_cross_entropy(const std::string& name)
    : declared_{name},
      logits{declared_.in<float>("logits", any_rows)},
      targets{declared_.in<std::int32_t>("targets", {any})},
      loss{declared_.out<float>("loss")} {
  declared_.same_work_as("nn::softmax_cross_entropy");
}

void softmax_cross_entropy::forward(forward_scope& run) const {
  const write<float> to{run.make(loss, {1})};
  const write<float> counted{run.save<float>(rows_that_count, {1})};
  launch(run, reprise::softmax_cross_entropy, read<float>{run[logits]},
         read<std::int32_t>{run[targets]}, to, counted, run.shape(logits)[1]);
}

void softmax_cross_entropy::backward(backward_scope& run) const {
  if (!run.wants(logits)) return;
  launch(run, softmax_cross_entropy_grad, read<float>{run.saved(logits)},
         read<std::int32_t>{run.saved(targets)}, read<float>{run.saved<float>(rows_that_count)},
         read<float>{run.grad(loss)}, write<float>{run.grad(logits)}, run.shape(logits)[1]);
}

}  // namespace reprise::nn
