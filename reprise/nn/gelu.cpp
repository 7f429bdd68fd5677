#include "reprise/nn/gelu.hpp"

#include "reprise/kernel/launch.hpp"
#include "reprise/nn/shapes.hpp"
#include "reprise/ops/gelu.hpp"

namespace reprise::nn {

gelu::gelu(const std::string& name)
    : declared_{name}, x{declared_.in<float>("x", any_rows)}, y{declared_.out<float>("y")} {
  declared_.same_work_as("nn::gelu");
}

void gelu::forward(forward_scope& run) const {
  launch(run, reprise::gelu, read<float>{run[x]}, write<float>{run.make(y, run.shape(x))});
}

void gelu::backward(backward_scope& run) const {
  if (!run.wants(x)) return;
  launch(run, gelu_grad, read<float>{run.saved(x)}, read<float>{run.grad(y)},
         write<float>{run.grad(x)});
}

}  // namespace reprise::nn
