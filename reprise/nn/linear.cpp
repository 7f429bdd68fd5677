#include "reprise/nn/linear.hpp"

namespace reprise::nn {

linear::linear(parameter& weight, const std::string& name) : linear{weight, nullptr, name} {}
linear::linear(parameter& weight, parameter& bias, const std::string& name)
    : linear{weight, &bias, name} {}

linear::linear(parameter& weight, parameter* bias, const std::string& name)
    : declared_{name},
      product_{declared_, "", weight, bias},
      x{declared_.in<float>("x", {any, product_.k()})},
      y{declared_.out<float>("y")} {}

void linear::forward(forward_scope& run) const {
  product_.forward(run, run[x], run.make(y, {run.shape(x)[0], product_.n()}));
}

void linear::backward(backward_scope& run) const {
  product_.backward(run, run.saved(x), run.grad(y), run.wants(x) ? run.grad(x) : view<float>{});
}

}  // namespace reprise::nn
