#include "reprise/nn/linear.hpp"

#include <fmt/format.h>

#include "reprise/base/error.hpp"
#include "reprise/kernel/launch.hpp"
#include "reprise/nn/shapes.hpp"
#include "reprise/ops/linear.hpp"
#include "reprise/ops/narrowing.hpp"

namespace reprise::nn {

namespace {

std::int64_t extent_of(const parameter& weight, int axis, const std::string& name) {
  const dims& shape = weight.value.shape;
  if (shape.rank == 2 && shape[0] > 0 && shape[1] > 0) return shape[axis];
  throw usage_error{
      fmt::format("layer '{}': its weight is of shape {} and must be [n, k], with n "
                  "and k of 1 at least; give it such a one",
                  name, to_string(shape))};
}

// The names that a backward finds the rounded operands under.
constexpr const char* rounded_x = "x, rounded";
constexpr const char* rounded_weight = "weight, rounded";

template <class A>
void form_gradients(backward_scope& run, const input<float>& x, const parameter* weight,
                    view<const A> dy, view<const A> from, view<const A> by, std::int64_t n,
                    std::int64_t k) {
  const matrix_precision products = run.in_force().products;
  if (run.wants(x)) {
    launch(run, linear_input_grad<A>, read<A>{dy}, read<A>{by}, write<float>{run.grad(x)}, n, k,
           products);
  }
  if (weight != nullptr) {
    const delivery to = run.add_to(*weight);
    launch(run, linear_weight_grad<A>, read<A>{dy}, read<A>{from}, inout<float>{to.to},
           read<std::int32_t>{to.rule}, n, k, products);
  }
}

}  // namespace

linear::linear(parameter& weight, const std::string& name) : linear{weight, nullptr, name} {}
linear::linear(parameter& weight, parameter& bias, const std::string& name)
    : linear{weight, &bias, name} {}

linear::linear(parameter& weight, parameter* bias, const std::string& name)
    : declared_{name},
      x{declared_.in<float>("x", {any, extent_of(weight, 1, name)})},
      y{declared_.out<float>("y")},
      weight_{&weight},
      bias_{bias},
      n_{extent_of(weight, 0, name)},
      k_{extent_of(weight, 1, name)},
      trains_weight_{declare(declared_, "weight", weight)},
      trains_bias_{bias != nullptr && declare(declared_, "bias", *bias)} {
  require_shape(weight, {n_, k_}, name, "weight");
  if (bias != nullptr) require_shape(*bias, {n_}, name, "bias");
}

void linear::forward(forward_scope& run) const {
  const std::int64_t m = run.shape(x)[0];
  const write<float> to{run.make(y, {m, n_})};
  const read<float> weight{values_of(*weight_)};
  const read<float> bias{bias_ != nullptr ? values_of(*bias_) : view<const float>{}};
  const precision& p = run.in_force();
  if (p.casts == cast_mode::none) {
    launch(run, reprise::linear<float>, read<float>{run[x]}, weight, bias, to, n_, k_, p.products);
    return;
  }
  const view<bf16> narrow_x = run.save<bf16>(rounded_x, {m, k_});
  const view<bf16> narrow_weight = run.save<bf16>(rounded_weight, {n_, k_});
  launch(run, narrow_to_bf16, read<float>{run[x]}, write<bf16>{narrow_x});
  launch(run, narrow_to_bf16, weight, write<bf16>{narrow_weight});
  launch(run, reprise::linear<bf16>, read<bf16>{narrow_x}, read<bf16>{narrow_weight}, bias, to, n_,
         k_, p.products);
}

void linear::backward(backward_scope& run) const {
  const view<const float> dy = run.grad(y);
  const parameter* const weight = trains_weight_ ? weight_ : nullptr;
  if (run.in_force().casts == cast_mode::none) {
    form_gradients<float>(run, x, weight, dy, run.saved(x), values_of(*weight_), n_, k_);
  } else if (weight != nullptr || run.wants(x)) {  // the bias's gradient is of dy as it comes
    const view<bf16> narrow_dy = run.scratch<bf16>({run.shape(x)[0], n_});
    launch(run, narrow_to_bf16, read<float>{dy}, write<bf16>{narrow_dy});
    form_gradients<bf16>(run, x, weight, narrow_dy, run.saved<bf16>(rounded_x),
                         run.saved<bf16>(rounded_weight), n_, k_);
  }
  if (trains_bias_) {
    const delivery to = run.add_to(*bias_);
    launch(run, column_sum, read<float>{dy}, inout<float>{to.to}, read<std::int32_t>{to.rule}, n_);
  }
}

}  // namespace reprise::nn
