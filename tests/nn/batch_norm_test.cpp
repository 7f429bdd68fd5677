// Batch norms: their gradients, their running statistics, and what they are in inference.
#include "reprise/nn/batch_norm.hpp"

#include <cmath>
#include <functional>
#include <utility>

#include "reprise/nn/gelu.hpp"
#include "reprise/nn/linear.hpp"
#include "reprise/nn/optimizers.hpp"
#include "tests/nn/host_ops.hpp"
#include "tests/nn/support.hpp"

namespace reprise::test {
namespace {

constexpr std::int64_t m = 9;
constexpr std::int64_t width = 7;
constexpr float eps = 1e-3F;

std::string refusal(const std::function<void()>& of) {
  try {
    of();
  } catch (const usage_error& refused) {
    return refused.what();
  }
  return "nothing was refused";
}

class batch_norms : public on_each_device {
 protected:
  nn::parameter_set set{
      here.memory, here.work,
      nn::joined({nn::linear_parameters("in", width, 4),
                  {{"norm.gain", {width}, nn::uniform{2}}, {"norm.bias", {width}, nn::uniform{1}}},
                  nn::linear_parameters("out", 3, width)}),
      3};
  nn::running_stats stats{here.memory, width, here.work};
  parameter& gain = set.at("norm.gain");
  parameter& bias = set.at("norm.bias");

  host_values values_of(const parameter& p) {
    return widened(read_back<float>(here.work, elements_of<const float>(p.value)));
  }
  std::vector<float> statistics() { return read_back<float>(here.work, stats.all()); }
  // Statistics of some layer that was trained.
  void give_statistics() {
    nn::stored_stats given{numbers(width, 31), numbers(width, 32)};
    for (float& one : given.variances) one = 0.5F + std::abs(one);
    stats.from_host(here.work, given);
  }

  struct both {
    std::vector<float> y, dx;
  };
  // The first pair is captured, the second replayed.
  template <nn::layer L>
  both run(L op, const std::vector<float>& x, const std::vector<float>& dy) {
    graphed_op<L> layer{std::move(op), budget};
    const tensor<float> from = tensor_of(here, x, {m, width});
    const tensor<float> cotangent = tensor_of(here, dy, {m, width});
    both found;
    for (int again = 0; again < 2; ++again) {
      set.drop_gradients();
      const forward_result made = layer.forward(here.work, {operand{layer.op().x, from}});
      const grad_result formed =
          layer.backward(here.work, made.ticket, {gradient_of(layer.op().y, cotangent)});
      found = {host_of(here, made[layer.op().y]), host_of(here, formed[layer.op().x])};
    }
    EXPECT_EQ(layer.counts().forward_replay, 1U);
    EXPECT_EQ(layer.counts().backward_replay, 1U);
    return found;
  }

  // in, norm, gelu, out; the norm as it is in training, or frozen.
  nn::network made(bool is_frozen = false, bool checkpointed = false) {
    nn::network net{budget};
    net.add(nn::linear{set.at("in.weight"), set.at("in.bias")});
    if (checkpointed) net.begin_checkpoint("norm");
    if (is_frozen) {
      net.add(nn::frozen_batch_norm{gain, bias, stats, eps});
    } else {
      net.add(nn::batch_norm{gain, bias, stats, {.eps = eps}});
    }
    net.add(nn::gelu{});
    if (checkpointed) net.end_checkpoint();
    net.add(nn::linear{set.at("out.weight"), set.at("out.bias")});
    return net;
  }
  operand rows_of(nn::network& net, unsigned seed) {
    return {net.x(), tensor_of(here, numbers(m * 4, seed), {m, 4})};
  }
  void train(nn::network& net, unsigned seed) {
    const nn::network_call call = net.forward(here.work, rows_of(net, seed));
    net.backward(here.work, call, tensor_of(here, numbers(m * 3, seed + 1), {m, 3}));
  }
};

TEST_P(batch_norms, have_the_gradients_of_their_formula) {
  const std::vector<float> x = numbers(m * width, 1);
  const std::vector<float> dy = numbers(m * width, 2);
  const host_values c = widened(dy);
  const host_values g = values_of(gain);
  const host_values b = values_of(bias);
  const auto formula = [&](const host_values& at, const host_values& by, const host_values& plus) {
    return host_batch_norm(at, by, plus, static_cast<double>(eps));
  };
  const both found = run(nn::batch_norm{gain, bias, stats, {.eps = eps}}, x, dy);
  expect_near(found.y, formula(widened(x), g, b), "y");
  expect_near(found.dx,
              central_differences([&](const host_values& at) { return dot(formula(at, g, b), c); },
                                  widened(x)),
              "dx");
  expect_near(gradient_of_parameter(here, gain),
              central_differences(
                  [&](const host_values& at) { return dot(formula(widened(x), at, b), c); }, g),
              "the gain's");
  expect_near(gradient_of_parameter(here, bias),
              central_differences(
                  [&](const host_values& at) { return dot(formula(widened(x), g, at), c); }, b),
              "the bias's");
}

TEST_P(batch_norms, that_are_frozen_have_the_gradient_of_their_formula_and_train_nothing) {
  give_statistics();
  const std::vector<float> before = statistics();
  const nn::stored_stats by = stats.to_host(here.work);
  const std::vector<float> x = numbers(m * width, 1);
  const std::vector<float> dy = numbers(m * width, 2);
  const auto formula = [&](const host_values& at) {
    return host_frozen_norm(at, values_of(gain), values_of(bias), widened(by.means),
                            widened(by.variances), static_cast<double>(eps));
  };
  const both found = run(nn::frozen_batch_norm{gain, bias, stats, eps}, x, dy);
  expect_near(found.y, formula(widened(x)), "y");
  expect_near(found.dx,
              central_differences(
                  [&](const host_values& at) { return dot(formula(at), widened(dy)); }, widened(x)),
              "dx");
  EXPECT_FALSE(gain.has_grad);
  EXPECT_FALSE(bias.has_grad);
  EXPECT_TRUE(same_bits(statistics(), before));
}

TEST_P(batch_norms, without_gradient_buffers_pass_the_gradient_of_their_input) {
  const std::vector<float> x = numbers(m * width, 1);
  const std::vector<float> dy = numbers(m * width, 2);
  const both trained = run(nn::batch_norm{gain, bias, stats, {.eps = eps}}, x, dy);
  gain.grad = bias.grad = {};
  const both used = run(nn::batch_norm{gain, bias, stats, {.eps = eps}}, x, dy);
  EXPECT_TRUE(same_bits(used.dx, trained.dx));
  EXPECT_FALSE(gain.has_grad);
  EXPECT_FALSE(bias.has_grad);
}

TEST_P(batch_norms, move_their_statistics_as_their_formula_says) {
  constexpr float momentum = 0.25F;
  graphed_op layer{nn::batch_norm{gain, bias, stats, {.eps = eps, .momentum = momentum}}, budget};
  host_values means(width, 0);
  host_values variances(width, 1);
  for (unsigned step = 0; step < 4; ++step) {
    const std::vector<float> x = numbers(m * width, 40 + step);
    layer.forward(here.work, {operand{layer.op().x, tensor_of(here, x, {m, width})}});
    for (std::size_t j = 0; j < width; ++j) {
      double mean = 0;
      double squares = 0;
      for (std::size_t i = j; i < x.size(); i += width) mean += static_cast<double>(x[i]) / m;
      for (std::size_t i = j; i < x.size(); i += width) {
        squares += std::pow(static_cast<double>(x[i]) - mean, 2);
      }
      means[j] += 0.25 * (mean - means[j]);
      variances[j] += 0.25 * (squares / (m - 1) - variances[j]);
    }
  }
  const nn::stored_stats found = stats.to_host(here.work);
  expect_near(found.means, means, "means");
  expect_near(found.variances, variances, "variances");
}

TEST_P(batch_norms, are_frozen_in_the_inference_of_a_network) {
  nn::network net = made();
  nn::network frozen = made(true);
  nn::sgd by{set, here.memory, here.work, {}};
  replay_cache cache{here.opened};
  std::vector<float> last;
  for (unsigned step = 0; step < 3; ++step) {
    train(net, 10 * step);
    by.update(here.work, cache);
    const std::vector<float> moved = statistics();
    const std::uint64_t captures = (*here.calls)[seam_call::capture];
    const std::vector<float> y = host_of(here, net.infer(here.work, rows_of(net, 5)));
    if (step != 0) {
      EXPECT_EQ((*here.calls)[seam_call::capture], captures) << "an update takes no recording away";
    }
    EXPECT_TRUE(same_bits(statistics(), moved)) << "inference moves none";
    EXPECT_TRUE(same_bits(y, host_of(here, frozen.forward(here.work, rows_of(frozen, 5)).y)));
    EXPECT_FALSE(same_bits(y, last)) << "what it has learned is seen";
    last = y;
  }
  EXPECT_EQ(net.counts().inference, 3U * 4);
  EXPECT_EQ(net.counts().forward_replay, 4U * 2);
}

TEST_P(batch_norms, in_a_checkpointed_span_move_their_statistics_once) {
  nn::network plain = made();
  for (unsigned step = 0; step < 3; ++step) train(plain, 10 * step);
  const std::vector<float> expected = statistics();
  const std::vector<float> gradients = read_back<float>(here.work, set.gradients());
  set.drop_gradients();
  stats = nn::running_stats{here.memory, width, here.work};
  nn::network spanned = made(false, true);
  for (unsigned step = 0; step < 3; ++step) train(spanned, 10 * step);
  EXPECT_TRUE(same_bits(statistics(), expected));
  EXPECT_TRUE(same_bits(read_back<float>(here.work, set.gradients()), gradients));
}

TEST_P(batch_norms, go_on_from_statistics_that_were_stored) {
  graphed_op layer{nn::batch_norm{gain, bias, stats}, budget};
  const auto step = [&](unsigned seed) {
    const tensor<float> x = tensor_of(here, numbers(m * width, seed), {m, width});
    layer.forward(here.work, {operand{layer.op().x, x}});
  };
  step(1);
  step(2);
  const nn::stored_stats stored = stats.to_host(here.work);
  step(3);
  const std::vector<float> expected = statistics();
  step(4);
  stats.from_host(here.work, stored);
  step(3);
  EXPECT_TRUE(same_bits(statistics(), expected));
}

INSTANTIATE_TEST_SUITE_P(devices, batch_norms, testing::ValuesIn(devices_under_test()),
                         name_of_device);

class batch_norm_refusals : public batch_norms {};

TEST_P(batch_norm_refusals, name_the_layer_whose_batch_has_no_variance) {
  graphed_op layer{nn::batch_norm{gain, bias, stats, {}, "middle"}, budget};
  const std::vector<float> before = statistics();
  const auto forward = [&](std::int64_t rows) {
    const tensor<float> x = tensor_of(here, numbers(rows * width, 1), {rows, width});
    return layer.forward(here.work, {operand{layer.op().x, x}});
  };
  EXPECT_EQ(refusal([&] { forward(1); }),
            "layer 'middle': its batch has 1 rows, and a variance is of 2 at least; give more, or "
            "run it in inference");
  EXPECT_TRUE(same_bits(statistics(), before));
  EXPECT_EQ(forward(m).how, ran::captured) << "what was refused has spoiled nothing";
  EXPECT_EQ(refusal([&] { forward(1); }),
            "layer 'middle': its batch has 1 rows, and a variance is of 2 at least; give more, or "
            "run it in inference");
  EXPECT_EQ(forward(m).how, ran::replayed);
}

TEST_P(batch_norm_refusals, name_what_does_not_fit) {
  EXPECT_EQ(refusal([&] {
              nn::batch_norm{set.at("out.bias"), bias, stats};
            }),
            "layer 'batch_norm': its gain is f32 of shape [3] and must be f32 of shape [7]; give "
            "it one of that shape");
  EXPECT_EQ(refusal([&] {
              nn::frozen_batch_norm{gain, set.at("out.bias"), stats};
            }),
            "layer 'frozen_batch_norm': its bias is f32 of shape [3] and must be f32 of shape [7]; "
            "give it one of that shape");
  EXPECT_EQ(refusal([&] {
              nn::batch_norm{gain, bias, stats, {.eps = 0}};
            }),
            "layer 'batch_norm': an eps of 0 may divide by zero; give one over 0");
  for (const auto& [momentum, text] : {std::pair{1.5F, "1.5"}, {-0.5F, "-0.5"}}) {
    EXPECT_EQ(refusal([&] {
                nn::batch_norm{gain, bias, stats, {.momentum = momentum}};
              }),
              "layer 'batch_norm': its momentum is " + std::string{text} +
                  "; give one of 0 at least and 1 at most");
  }
  EXPECT_EQ(refusal([&] {
              nn::running_stats{here.memory, 0, here.work};
            }),
            "running_stats: 0 columns have no statistics; give 1 at least");
  EXPECT_EQ(refusal([&] {
              stats.from_host(here.work, {numbers(7, 1), numbers(6, 1)});
            }),
            "running_stats: 7 means and 6 variances are stored, and there are 7 columns here; give "
            "those of one layer");
  bias.grad = {};
  EXPECT_EQ(refusal([&] {
              nn::batch_norm{gain, bias, stats};
            }),
            "layer 'batch_norm': of gain and bias only one has a gradient buffer; give both of "
            "them one, or none");
}

INSTANTIATE_TEST_SUITE_P(devices, batch_norm_refusals, testing::Values("cpu"), name_of_device);

}  // namespace
}  // namespace reprise::test
