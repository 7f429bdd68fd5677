// The gradients of each op are those of its formula: central differences of a plain host
// implementation in double.
#include <algorithm>
#include <cmath>
#include <utility>

#include "reprise/nn/dropout.hpp"
#include "reprise/nn/gelu.hpp"
#include "reprise/nn/layer_norm.hpp"
#include "reprise/nn/linear.hpp"
#include "reprise/nn/sequence.hpp"
#include "reprise/nn/silu.hpp"
#include "reprise/nn/softmax_cross_entropy.hpp"
#include "reprise/nn/squared_error.hpp"
#include "reprise/ops/random_uniform.hpp"
#include "tests/nn/host_ops.hpp"
#include "tests/nn/support.hpp"

namespace reprise::test {
namespace {

class gradients : public on_each_device {
 protected:
  struct both {
    std::vector<float> y, dx;
  };

  // Forward and backward of one layer. Twice: the first pair is captured, the second replayed, and
  // what is added to parameters' gradients is dropped in between.
  template <nn::layer L>
  both run(L op, std::int64_t m, std::int64_t width, const std::vector<float>& x,
           const std::vector<float>& dy, std::vector<parameter*> trained = {}) {
    graphed_op<L> layer{std::move(op), budget};
    const buffer<float> from = on_device(here, x);
    const buffer<float> cotangent = on_device(here, dy);
    both found;
    for (int again = 0; again < 2; ++again) {
      for (parameter* const p : trained) p->has_grad = false;
      const forward_result made = layer.forward(
          here.work, {operand{layer.op().x(view<const float>{from.all()}, {m, width})}});
      const grad_result formed = layer.backward(
          here.work, made.ticket, {gradient_of(layer.op().y, view<const float>{cotangent.all()})});
      found = {host_of(here, made[layer.op().y]), host_of(here, formed[layer.op().x])};
    }
    EXPECT_EQ(layer.counts().forward_replay, 1U);
    EXPECT_EQ(layer.counts().backward_replay, 1U);
    return found;
  }

  // An elementwise layer of no parameters against its formula.
  template <nn::layer L>
  void expect_elementwise(L op, const std::function<host_values(const host_values&)>& formula) {
    std::vector<float> x = numbers(5 * 7, 1);
    for (float& value : x) value *= 6;
    const std::vector<float> dy = numbers(5 * 7, 2);
    const both found = run(std::move(op), 5, 7, x, dy);
    expect_near(found.y, formula(widened(x)), "y");
    expect_near(
        found.dx,
        central_differences([&](const host_values& at) { return dot(formula(at), widened(dy)); },
                            widened(x)),
        "dx");
  }
};

TEST_P(gradients, of_a_linear_layer_are_those_of_its_formula) {
  constexpr std::int64_t m = 9, n = 5, k = 70;
  nn::parameter_set set{here.memory, here.work, nn::linear_parameters("a", n, k), 3};
  const std::vector<float> x = numbers(m * k, 1);
  const std::vector<float> dy = numbers(m * n, 2);
  const host_values c = widened(dy);
  const std::vector<nn::stored_parameter> stored = set.to_host(here.work);
  const host_values w = widened(stored[0].values);
  const host_values b = widened(stored[1].values);
  const both found = run(nn::linear{set[0], set[1]}, m, k, x, dy, {&set[0], &set[1]});
  expect_near(found.y, host_linear(widened(x), w, b, k), "y");
  expect_near(
      found.dx,
      central_differences([&](const host_values& at) { return dot(host_linear(at, w, b, k), c); },
                          widened(x)),
      "dx");
  expect_near(
      gradient_of_parameter(here, set[0]),
      central_differences(
          [&](const host_values& at) { return dot(host_linear(widened(x), at, b, k), c); }, w),
      "the weight's");
  expect_near(
      gradient_of_parameter(here, set[1]),
      central_differences(
          [&](const host_values& at) { return dot(host_linear(widened(x), w, at, k), c); }, b),
      "the bias's");
}

// The formula at the rounded operands, and what is rounded counts as itself.
TEST_P(gradients, of_a_layer_that_rounds_to_bf16_are_those_at_the_rounded_operands) {
  constexpr std::int64_t m = 9, n = 6, k = 33;
  const precision_scope rounds{{matrix_precision::full, cast_mode::bf16}};
  nn::parameter_set set{here.memory, here.work, nn::linear_parameters("a", n, k), 3};
  const std::vector<float> x = numbers(m * k, 1);
  const std::vector<float> dy = numbers(m * n, 2);
  const std::vector<nn::stored_parameter> stored = set.to_host(here.work);
  const host_values near_x = rounded_to_bf16(x);
  const host_values near_w = rounded_to_bf16(stored[0].values);
  const host_values b = widened(stored[1].values);
  const host_values c = rounded_to_bf16(dy);
  const both found = run(nn::linear{set[0], set[1]}, m, k, x, dy, {&set[0], &set[1]});
  expect_near(found.y, host_linear(near_x, near_w, b, k), "y");
  expect_near(
      found.dx,
      central_differences(
          [&](const host_values& at) { return dot(host_linear(at, near_w, b, k), c); }, near_x),
      "dx");
  expect_near(
      gradient_of_parameter(here, set[0]),
      central_differences(
          [&](const host_values& at) { return dot(host_linear(near_x, at, b, k), c); }, near_w),
      "the weight's");
  expect_near(gradient_of_parameter(here, set[1]),  // dy as it came
              central_differences(
                  [&](const host_values& at) {
                    return dot(host_linear(near_x, near_w, at, k), widened(dy));
                  },
                  b),
              "the bias's");
}

TEST_P(gradients, of_a_layer_norm_are_those_of_its_formula) {
  constexpr std::int64_t m = 6, width = 37;
  nn::parameter_set set{here.memory,
                        here.work,
                        {{"gain", {width}, nn::uniform{2}}, {"bias", {width}, nn::uniform{1}}},
                        3};
  const std::vector<float> x = numbers(m * width, 1);
  const std::vector<float> dy = numbers(m * width, 2);
  const host_values c = widened(dy);
  const std::vector<nn::stored_parameter> stored = set.to_host(here.work);
  const host_values gain = widened(stored[0].values);
  const host_values bias = widened(stored[1].values);
  constexpr float eps = 1e-3F;
  const auto formula = [](const host_values& at, const host_values& g, const host_values& b) {
    return host_layer_norm(at, g, b, static_cast<double>(eps));
  };
  const both found = run(nn::layer_norm{set[0], set[1], eps}, m, width, x, dy, {&set[0], &set[1]});
  expect_near(found.y, formula(widened(x), gain, bias), "y");
  expect_near(
      found.dx,
      central_differences([&](const host_values& at) { return dot(formula(at, gain, bias), c); },
                          widened(x)),
      "dx");
  expect_near(
      gradient_of_parameter(here, set[0]),
      central_differences(
          [&](const host_values& at) { return dot(formula(widened(x), at, bias), c); }, gain),
      "the gain's");
  expect_near(
      gradient_of_parameter(here, set[1]),
      central_differences(
          [&](const host_values& at) { return dot(formula(widened(x), gain, at), c); }, bias),
      "the bias's");
}

// Forwards and backwards, under each rule of the sums over rows: few rows and many.
TEST_P(gradients, of_a_layer_norm_with_gelu_behind_have_the_bits_of_the_two_layers) {
  constexpr std::int64_t width = 37;
  const nn::parameter_specs specs{{"gain", {width}, nn::uniform{2}},
                                  {"bias", {width}, nn::uniform{1}}};
  nn::parameter_set one{here.memory, here.work, specs, 3};
  nn::parameter_set two{here.memory, here.work, specs, 3};
  for (const std::int64_t m : {6, 150}) {
    std::vector<float> x = numbers(static_cast<std::size_t>(m * width), 1);
    for (float& value : x) value *= 3;
    const std::vector<float> dy = numbers(x.size(), 2);
    nn::sequence apart{"apart"};
    apart.add(nn::layer_norm{two[0], two[1], 1e-3F}).add(nn::gelu{});
    const both expected = run(apart, m, width, x, dy, {&two[0], &two[1]});
    const both found =
        run(nn::layer_norm{one[0], one[1], {.eps = 1e-3F, .then = nn::activation::gelu}}, m, width,
            x, dy, {&one[0], &one[1]});
    EXPECT_TRUE(same_bits(found.y, expected.y));
    EXPECT_TRUE(same_bits(found.dx, expected.dx));
    for (const std::size_t p : {0U, 1U}) {
      EXPECT_TRUE(
          same_bits(gradient_of_parameter(here, one[p]), gradient_of_parameter(here, two[p])));
    }
  }
}

TEST_P(gradients, of_gelu_are_those_of_its_formula) {
  expect_elementwise(nn::gelu{}, host_gelu);
}

TEST_P(gradients, of_silu_are_those_of_its_formula) {
  expect_elementwise(nn::silu{}, host_silu);
}

// The replay of `run` is the second forward: it draws what comes behind the first's numbers.
TEST_P(gradients, of_dropout_are_those_of_what_it_has_kept) {
  philox_counter counter{11, 5};
  const philox_counter second{11, 5 + uniform_draws(5 * 7)};
  expect_elementwise(nn::dropout{0.4F, counter},
                     [&](const host_values& x) { return host_dropout(x, 0.4F, second); });
  EXPECT_EQ(counter.next(), 5 + 2 * uniform_draws(5 * 7));
}

TEST_P(gradients, of_dropout_that_drops_nothing_are_those_of_a_copy) {
  philox_counter counter{11, 5};
  expect_elementwise(nn::dropout{0, counter}, [](const host_values& x) { return x; });
  EXPECT_EQ(counter.next(), 5U) << "it draws nothing";
}

TEST_P(gradients, of_a_cross_entropy_are_those_of_its_formula) {
  constexpr std::int64_t m = 6, classes = 10;
  graphed_op<nn::softmax_cross_entropy> loss{nn::softmax_cross_entropy{}, budget};
  const nn::softmax_cross_entropy& op = loss.op();
  std::vector<float> logits = numbers(m * classes, 1);
  for (float& value : logits) value *= 4;
  const std::vector<std::int32_t> targets{3, -1, 9, 0, -1, 3};
  const buffer<float> from = on_device(here, logits);
  const buffer<float> half = on_device<float>(here, {0.5F});
  for (int again = 0; again < 2; ++again) {
    const forward_result made =
        loss.forward(here.work, {operand{op.logits(view<const float>{from.all()}, {m, classes})},
                                 operand{op.targets.from_host(targets)}});
    const grad_result formed = loss.backward(here.work, made.ticket,
                                             {gradient_of(op.loss, view<const float>{half.all()})});
    expect_near(host_of(here, made[op.loss]), {host_cross_entropy(widened(logits), targets)},
                "the loss");
    expect_near(host_of(here, formed[op.logits]),
                central_differences(
                    [&](const host_values& at) { return host_cross_entropy(at, targets) / 2; },
                    widened(logits)),
                "of the logits");
  }
}

TEST_P(gradients, of_a_squared_error_are_those_of_its_formula_also_of_its_target) {
  constexpr std::int64_t m = 6, width = 11;
  graphed_op<nn::squared_error> loss{nn::squared_error{}, budget};
  const nn::squared_error& op = loss.op();
  const std::vector<float> x = numbers(m * width, 1);
  const std::vector<float> target = numbers(m * width, 2);
  const buffer<float> from = on_device(here, x);
  const buffer<float> to = on_device(here, target);
  const buffer<float> thrice = on_device<float>(here, {3});
  for (int again = 0; again < 2; ++again) {
    const forward_result made =
        loss.forward(here.work, {operand{op.x(view<const float>{from.all()}, {m, width})},
                                 operand{op.target(view<const float>{to.all()}, {m, width})}});
    const grad_result formed = loss.backward(
        here.work, made.ticket, {gradient_of(op.loss, view<const float>{thrice.all()})});
    expect_near(host_of(here, made[op.loss]), {host_squared_error(widened(x), widened(target))},
                "the loss");
    expect_near(
        host_of(here, formed[op.x]),
        central_differences(
            [&](const host_values& at) { return 3 * host_squared_error(at, widened(target)); },
            widened(x)),
        "of x");
    expect_near(host_of(here, formed[op.target]),
                central_differences(
                    [&](const host_values& at) { return 3 * host_squared_error(widened(x), at); },
                    widened(target)),
                "of the target");
  }
}

// What is not wanted is not formed: a target that is data has no gradient.
TEST_P(gradients, are_formed_where_they_are_wanted_alone) {
  graphed_op<nn::squared_error> loss{nn::squared_error{}, budget};
  const nn::squared_error& op = loss.op();
  const buffer<float> x = on_device<float>(here, {1, 2});
  const buffer<float> one = on_device<float>(here, {1});
  const forward_result made =
      loss.forward(here.work, {operand{op.x(view<const float>{x.all()}, {1, 2})},
                               operand{op.target(view<const float>{x.all()}, {1, 2})}});
  const grad_result formed =
      loss.backward(here.work, made.ticket, {gradient_of(op.loss, view<const float>{one.all()})},
                    wanted::only(op.x));
  EXPECT_EQ(host_of(here, formed[op.x]), (std::vector<float>{0, 0}));
  EXPECT_THROW(static_cast<void>(formed[op.target]), usage_error);
}

INSTANTIATE_TEST_SUITE_P(devices, gradients, testing::ValuesIn(devices_under_test()),
                         name_of_device);

// Layers refuse parameters that do not fit, by name.
class layers : public on_each_device {};

std::string refusal(const std::function<void()>& of) {
  try {
    of();
  } catch (const usage_error& refused) {
    return refused.what();
  }
  return "nothing was refused";
}

TEST_P(layers, refuse_parameters_of_another_shape) {
  nn::parameter_set set{
      here.memory,
      here.work,
      {{"w", {4, 3}, nn::constant{}}, {"b", {3}, nn::constant{}}, {"flat", {12}, nn::constant{}}},
      1};
  EXPECT_EQ(refusal([&] {
              nn::linear{set.at("w"), set.at("b"), "out"};
            }),
            "layer 'out': its bias is f32 of shape [3] and must be f32 of shape [4]; give it one "
            "of that shape");
  EXPECT_EQ(refusal([&] {
              nn::linear{set.at("flat"), "out"};
            }),
            "layer 'out': its weight is of shape [12] and must be [n, k], with n and k of 1 at "
            "least; give it such a one");
  EXPECT_EQ(refusal([&] {
              nn::layer_norm{set.at("b"), set.at("flat")};
            }),
            "layer 'layer_norm': its bias is f32 of shape [12] and must be f32 of shape [3]; give "
            "it one of that shape");
}

TEST_P(layers, refuse_a_rate_that_drops_all) {
  philox_counter counter{1};
  EXPECT_EQ(refusal([&] {
              nn::dropout{1, counter};
            }),
            "layer 'dropout': its rate is 1; give one of 0 at least and less than 1");
}

TEST_P(layers, leave_a_parameter_without_a_gradient_buffer_as_it_is) {
  nn::parameter_set set{here.memory, here.work, nn::linear_parameters("a", 3, 4), 3};
  set[1].grad = {};
  graphed_op<nn::linear> layer{nn::linear{set[0], set[1]}, budget};
  const tensor<float> x = tensor_of(here, numbers(8, 1), {2, 4});
  const tensor<float> dy = tensor_of(here, numbers(6, 2), {2, 3});
  const forward_result made = layer.forward(here.work, {operand{layer.op().x, x}});
  layer.backward(here.work, made.ticket, {gradient_of(layer.op().y, dy)});
  EXPECT_TRUE(set[0].has_grad);
  EXPECT_FALSE(set[1].has_grad);
}

TEST_P(layers, train_gain_and_bias_of_a_norm_together) {
  nn::parameter_set set{here.memory, here.work, nn::norm_parameters("a", 4), 3};
  set[1].grad = {};
  EXPECT_EQ(refusal([&] {
              nn::layer_norm{set[0], set[1], 1e-5F, "middle"};
            }),
            "layer 'middle': of gain and bias only one has a gradient buffer; give both of them "
            "one, or none");
}

INSTANTIATE_TEST_SUITE_P(devices, layers, testing::Values("cpu"), name_of_device);

}  // namespace
}  // namespace reprise::test
