#include "reprise/nn/product.hpp"

#include <fmt/format.h>

#include <type_traits>

#include "reprise/base/error.hpp"
#include "reprise/kernel/launch.hpp"
#include "reprise/nn/shapes.hpp"
#include "reprise/ops/linear.hpp"
#include "reprise/ops/narrowing.hpp"

namespace reprise::nn {

namespace {

std::string named(const std::string& role, const char* what) {
  return role.empty() ? what : role + "." + what;
}

std::int64_t extent_of(const parameter& weight, int axis, const std::string& layer,
                       const std::string& role) {
  const dims& shape = weight.value.shape;
  if (shape.rank == 2 && shape[0] > 0 && shape[1] > 0) return shape[axis];
  throw usage_error{
      fmt::format("layer '{}': its {} is of shape {} and must be [n, k], with n "
                  "and k of 1 at least; give it such a one",
                  layer, named(role, "weight"), to_string(shape))};
}

}  // namespace

product::product(signature& in, const std::string& role, parameter& weight, parameter* bias)
    : weight_{&weight},
      bias_{bias},
      n_{extent_of(weight, 0, in.name(), role)},
      k_{extent_of(weight, 1, in.name(), role)},
      trains_weight_{declare(in, named(role, "weight"), weight)},
      trains_bias_{bias != nullptr && declare(in, named(role, "bias"), *bias)},
      rounded_x_{named(role, "x, rounded")},
      rounded_weight_{named(role, "weight, rounded")} {
  require_shape(weight, {n_, k_}, in.name(), named(role, "weight"));
  if (bias != nullptr) require_shape(*bias, {n_}, in.name(), named(role, "bias"));
}

void product::apply(site at, view<const float> x, view<float> y) const {
  launch(at, reprise::linear<float>, read<float>{x}, read<float>{values_of(*weight_)},
         read<float>{bias_ != nullptr ? values_of(*bias_) : view<const float>{}}, write<float>{y},
         n_, k_, precision_now().products);
}

void product::forward(forward_scope& run, view<const float> x, view<float> y) const {
  const write<float> to{y};
  const read<float> weight{values_of(*weight_)};
  const read<float> bias{bias_ != nullptr ? values_of(*bias_) : view<const float>{}};
  const precision& p = run.in_force();
  if (p.casts == cast_mode::none) {
    launch(run, reprise::linear<float>, read<float>{x}, weight, bias, to, n_, k_, p.products);
    return;
  }
  const auto m = static_cast<std::int64_t>(x.size()) / k_;
  const view<bf16> narrow_x = run.save<bf16>(rounded_x_, {m, k_});
  const view<bf16> narrow_weight = run.save<bf16>(rounded_weight_, {n_, k_});
  launch(run, narrow_to_bf16, read<float>{x}, write<bf16>{narrow_x});
  launch(run, narrow_to_bf16, weight, write<bf16>{narrow_weight});
  launch(run, reprise::linear<bf16>, read<bf16>{narrow_x}, read<bf16>{narrow_weight}, bias, to, n_,
         k_, p.products);
}

template <class A>
void product::form_gradients(backward_scope& run, view<const A> dy, view<const A> x,
                             view<const A> weight, view<float> dx) const {
  const matrix_precision products = run.in_force().products;
  if (dx.size() != 0) {
    launch(run, linear_input_grad<A>, read<A>{dy}, read<A>{weight}, write<float>{dx}, n_, k_,
           products);
  }
  if constexpr (std::is_same_v<A, float>) {
    if (trains_weight_ && trains_bias_) return form_parameter_gradients(run, dy, x);
  }
  if (trains_weight_) {
    const delivery to = run.add_to(*weight_);
    launch(run.aside(), linear_weight_grad<A>, read<A>{dy}, read<A>{x}, inout<float>{to.to},
           read<std::int32_t>{to.rule}, n_, k_, products);
  }
}

void product::form_parameter_gradients(backward_scope& run, view<const float> dy,
                                       view<const float> x) const {
  const delivery to = run.add_to(*weight_);
  const delivery bias = run.add_to(*bias_);
  launch(run.aside(), linear_parameter_grads, read<float>{dy}, read<float>{x}, inout<float>{to.to},
         inout<float>{bias.to}, read<std::int32_t>{to.rule}, read<std::int32_t>{bias.rule}, n_, k_,
         run.in_force().products);
}

void product::backward(backward_scope& run, view<const float> x, view<const float> dy,
                       view<float> dx) const {
  const bool narrows = run.in_force().casts != cast_mode::none;
  if (!narrows) {
    form_gradients<float>(run, dy, x, values_of(*weight_), dx);
  } else if (trains_weight_ || dx.size() != 0) {  // the bias's gradient is of dy as it comes
    const view<bf16> narrow_dy = run.scratch<bf16>({static_cast<std::int64_t>(dy.size())});
    launch(run, narrow_to_bf16, read<float>{dy}, write<bf16>{narrow_dy});
    form_gradients<bf16>(run, narrow_dy, run.saved<bf16>(rounded_x_),
                         run.saved<bf16>(rounded_weight_), dx);
  }
  if (trains_bias_ && (narrows || !trains_weight_)) {  // else it came with the weight's
    const delivery to = run.add_to(*bias_);
    launch(run.aside(), column_sum, read<float>{dy}, inout<float>{to.to},
           read<std::int32_t>{to.rule}, n_);
  }
}

}  // namespace reprise::nn
