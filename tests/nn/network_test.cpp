// A sequence of graphed layers: its gradients, inference, checkpointed spans, counts and refusals.
#include "reprise/nn/network.hpp"

#include <functional>
#include <utility>

#include "reprise/nn/dropout.hpp"
#include "reprise/nn/gelu.hpp"
#include "reprise/nn/layer_norm.hpp"
#include "reprise/nn/linear.hpp"
#include "tests/nn/host_ops.hpp"
#include "tests/nn/support.hpp"

namespace reprise::test {
namespace {

constexpr std::int64_t m = 6;
constexpr std::int64_t k = 11;
constexpr std::int64_t n = 4;
constexpr std::int64_t inner = 8;

std::string refusal(const std::function<void()>& of) {
  try {
    of();
  } catch (const usage_error& refused) {
    return refused.what();
  }
  return "nothing was refused";
}

class networks : public on_each_device {
 protected:
  nn::parameter_set set{
      here.memory, here.work,
      nn::joined({nn::linear_parameters("in", inner, k), nn::norm_parameters("norm", inner),
                  nn::linear_parameters("out", n, inner)}),
      3};
  philox_counter counter{9};

  enum class span : unsigned char { none, middle, all };

  nn::network made(span checkpointed = span::none, const graphed_options& options = {}) {
    nn::network net{budget, options};
    if (checkpointed == span::all) net.begin_checkpoint("all");
    net.add(nn::linear{set.at("in.weight"), set.at("in.bias")});
    if (checkpointed == span::middle) net.begin_checkpoint("middle");
    net.add(nn::layer_norm{set.at("norm.gain"), set.at("norm.bias")});
    net.add(nn::gelu{});
    net.add(nn::dropout{0.25F, counter});
    if (checkpointed == span::middle) net.end_checkpoint();
    net.add(nn::linear{set.at("out.weight"), set.at("out.bias")});
    if (checkpointed == span::all) net.end_checkpoint();
    return net;
  }

  struct seen {
    std::vector<float> y, dx, gradients;
  };
  // Two micro-batches, whose gradients are added up, forwards first.
  seen train(nn::network& net) {
    set.drop_gradients();
    counter.set(9, 0);
    seen found;
    std::vector<nn::network_call> calls;
    for (unsigned i = 0; i < 2; ++i) {
      calls.push_back(
          net.forward(here.work, operand{net.x(), tensor_of(here, numbers(m * k, i), {m, k})}));
      found.y = host_of(here, calls.back().y);
    }
    for (unsigned i = 0; i < 2; ++i) {
      const tensor<float> dy = tensor_of(here, numbers(m * n, 10 + i), {m, n});
      found.dx = host_of(here, net.backward(here.work, calls[i], dy, true));
    }
    found.gradients = all_gradients();
    return found;
  }
  std::vector<float> all_gradients() {
    std::vector<float> all;
    for (std::size_t i = 0; i < set.size(); ++i) {
      const std::vector<float> one = gradient_of_parameter(here, set[i]);
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }
  static void expect_same(const seen& a, const seen& b) {
    EXPECT_TRUE(same_bits(a.y, b.y));
    EXPECT_TRUE(same_bits(a.dx, b.dx));
    EXPECT_TRUE(same_bits(a.gradients, b.gradients));
  }
};

TEST_P(networks, pass_gradients_through_all_of_their_layers) {
  nn::network net{budget};
  net.add(nn::linear{set.at("in.weight"), set.at("in.bias")});
  net.add(nn::gelu{});
  net.add(nn::linear{set.at("out.weight"), set.at("out.bias")});
  const std::vector<float> x = numbers(m * k, 1);
  const std::vector<float> dy = numbers(m * n, 2);
  const nn::network_call call =
      net.forward(here.work, operand{net.x(), tensor_of(here, x, {m, k})});
  const std::vector<float> dx =
      host_of(here, net.backward(here.work, call, tensor_of(here, dy, {m, n}), true));
  const auto stored = set.to_host(here.work);
  const auto formula = [&](const host_values& at) {
    const host_values h =
        host_gelu(host_linear(at, widened(stored[0].values), widened(stored[1].values), k));
    return dot(host_linear(h, widened(stored[4].values), widened(stored[5].values), inner),
               widened(dy));
  };
  const host_values expected = central_differences(formula, widened(x));
  for (std::size_t i = 0; i < dx.size(); ++i) {
    ASSERT_NEAR(static_cast<double>(dx[i]), expected[i], 3e-6) << i;  // as in gradients_test.cpp
  }
}

TEST_P(networks, give_the_same_bits_with_checkpointed_spans_wherever_they_lie) {
  nn::network plain = made(span::none, {.record = false});
  const seen expected = train(plain);
  for (const span where : {span::none, span::middle, span::all}) {
    for (const on_conflict& policy :
         {on_conflict{hold{}}, on_conflict{recompute{}}, on_conflict{slots{2}}}) {
      SCOPED_TRACE(text_of(policy) + ", span " + std::to_string(static_cast<int>(where)));
      nn::network net = made(where, {.conflict = policy});
      for (int round = 0; round < 3; ++round) expect_same(train(net), expected);
      EXPECT_GT(net.counts().forward_replay, 0U);
      EXPECT_GT(net.counts().backward_replay, 0U);
    }
  }
}

// A span drops its tickets, so nothing is owed while the second micro-batch comes, and each layer
// in it replays twice a micro-batch: once for what comes behind it, once for its backward.
TEST_P(networks, run_the_layers_of_a_checkpointed_span_once_more_before_its_backward) {
  nn::network net = made(span::all);
  for (int round = 0; round < 3; ++round) train(net);
  const grad_counts counts = net.counts();
  EXPECT_EQ(counts.forward_capture, 5U);
  EXPECT_EQ(counts.forward_replay, 5U * (3 * 2 * 2 - 1));
  EXPECT_EQ(counts.backward_capture, 5U);
  EXPECT_EQ(counts.backward_replay, 5U * (3 * 2 - 1));
  EXPECT_EQ(counts.stale_replay, 0U);
  EXPECT_EQ(counts.eager_forwards() + counts.eager_backwards(), 0U);
  EXPECT_EQ(counter.next(), 2 * ((m * inner + 3) / 4)) << "a recompute draws nothing anew";
}

TEST_P(networks, leave_dropout_out_of_inference_and_touch_no_frame) {
  nn::network net = made();
  nn::network without{budget};
  without.add(nn::linear{set.at("in.weight"), set.at("in.bias")});
  without.add(nn::layer_norm{set.at("norm.gain"), set.at("norm.bias")});
  without.add(nn::gelu{});
  without.add(nn::linear{set.at("out.weight"), set.at("out.bias")});
  const operand x{net.x(), tensor_of(here, numbers(m * k, 1), {m, k})};
  const operand same{without.x(), tensor_of(here, numbers(m * k, 1), {m, k})};
  for (int again = 0; again < 3; ++again) {
    const std::vector<float> expected = host_of(here, without.forward(here.work, same).y);
    EXPECT_TRUE(same_bits(host_of(here, net.infer(here.work, x)), expected));
  }
  EXPECT_EQ(counter.next(), 0U);
  EXPECT_EQ(net.counts().inference, 3U * 4);
  EXPECT_EQ(net.counts().forwards(), 0U);
  for (std::size_t i = 0; i < net.size(); ++i) EXPECT_EQ(net.at(i).frames(), 0U);
}

TEST_P(networks, run_no_backward_in_front_of_what_trains) {
  for (const char* const frozen : {"in.weight", "in.bias"}) set.at(frozen).grad = {};
  nn::network net{budget};
  net.add(nn::linear{set.at("in.weight"), set.at("in.bias")});
  net.add(nn::gelu{});
  net.add(nn::linear{set.at("out.weight"), set.at("out.bias")});
  const nn::network_call call =
      net.forward(here.work, operand{net.x(), tensor_of(here, numbers(m * k, 1), {m, k})});
  const tensor<float> dy = tensor_of(here, numbers(m * n, 2), {m, n});
  EXPECT_FALSE(net.backward(here.work, call, dy)) << "nobody wants the gradient of x";
  EXPECT_EQ(net.at(0).counts().backwards(), 0U);
  EXPECT_EQ(net.at(1).counts().backwards(), 0U);
  EXPECT_EQ(net.at(2).counts().backwards(), 1U);
  EXPECT_TRUE(set.at("out.weight").has_grad);
  EXPECT_FALSE(set.at("in.weight").has_grad);
}

// In the usual loop the call before dies when the new one is there.
TEST_P(networks, owe_nothing_in_front_of_what_trains_once_their_backward_has_passed) {
  for (const char* const frozen : {"in.weight", "in.bias"}) set.at(frozen).grad = {};
  nn::network net{budget, {.conflict = hold{}}};
  net.add(nn::linear{set.at("in.weight"), set.at("in.bias")});
  net.add(nn::gelu{});
  net.add(nn::linear{set.at("out.weight"), set.at("out.bias")});
  const tensor<float> dy = tensor_of(here, numbers(m * n, 2), {m, n});
  nn::network_call call;
  for (unsigned i = 0; i < 3; ++i) {
    call = net.forward(here.work, operand{net.x(), tensor_of(here, numbers(m * k, i), {m, k})});
    net.backward(here.work, call, dy);
  }
  EXPECT_EQ(net.counts().forward_capture, 3U);
  EXPECT_EQ(net.counts().forward_replay, 2U * 3);
  EXPECT_EQ(net.counts().eager_forwards(), 0U);
}

std::string staleness(const std::function<void()>& of) {
  try {
    of();
  } catch (const stale_error& refused) {
    return refused.what();
  }
  return "nothing was stale";
}

TEST_P(networks, refuse_a_backward_of_weights_that_an_update_has_moved) {
  const std::string since =
      " was changed in place since the forward that saved it; run the backward before the change, "
      "or the forward again";
  const std::vector<std::pair<std::string, std::string>> moved{
      {"in.weight", "op 'linear': parameter 'weight'"},
      {"norm.bias", "op 'layer_norm': parameter 'bias'"},
      {"out.bias", "op 'linear': parameter 'bias'"}};
  const tensor<float> dy = tensor_of(here, numbers(m * n, 2), {m, n});
  for (const span where : {span::none, span::middle, span::all}) {
    SCOPED_TRACE("span " + std::to_string(static_cast<int>(where)));
    nn::network net = made(where);
    const tensor<float> x = tensor_of(here, numbers(m * k, 1), {m, k});
    for (const auto& [name, told] : moved) {
      const nn::network_call call = net.forward(here.work, operand{net.x(), x});
      set.at(name).version.bump();
      EXPECT_EQ(staleness([&] { net.backward(here.work, call, dy); }), told + since);
    }
    const nn::network_call call = net.forward(here.work, operand{net.x(), x});
    tensor<float>{x}.changed();
    EXPECT_EQ(staleness([&] { net.backward(here.work, call, dy); }),
              "op 'linear': input 'x'" + since);
  }
}

// x is a gradient that another op lends, and moves before its next backward.
TEST_P(networks, recompute_a_span_from_where_its_input_lies_by_then) {
  nn::network lender{budget, {.returned = gradients::moved}};
  lender.add(nn::gelu{});
  const auto lent = [&](unsigned seed) {
    const nn::network_call call = lender.forward(
        here.work, operand{lender.x(), tensor_of(here, numbers(m * k, seed), {m, k})});
    const tensor<float> dy = tensor_of(here, numbers(m * k, seed + 1), {m, k});
    return lender.backward(here.work, call, dy, true);
  };
  const auto gradients_of = [&](span where, const tensor<float>& x) {
    nn::network net = made(where);
    set.drop_gradients();
    counter.set(9, 0);
    const nn::network_call call = net.forward(here.work, operand{net.x(), x});
    lent(50);
    net.backward(here.work, call, tensor_of(here, numbers(m * n, 2), {m, n}));
    return all_gradients();
  };
  lent(1);
  const tensor<float> x = lent(3);
  const tensor<float> copied = tensor_of(here, host_of(here, x), {m, k});
  const view<float> before = x.get();
  const std::vector<float> recomputed = gradients_of(span::all, x);
  EXPECT_NE(x.get().data(), before.data()) << "it has moved";
  EXPECT_TRUE(same_bits(recomputed, gradients_of(span::none, copied)));
}

TEST_P(networks, draw_from_several_counters_in_one_checkpointed_span) {
  philox_counter other{11};
  const auto y_and_dx = [&](bool checkpointed) {
    counter.set(9, 0);
    other.set(11, 0);
    nn::network net{budget};
    if (checkpointed) net.begin_checkpoint("both");
    net.add(nn::dropout{0.5F, counter});
    net.add(nn::gelu{});
    net.add(nn::dropout{0.25F, other});
    if (checkpointed) net.end_checkpoint();
    const tensor<float> x = tensor_of(here, numbers(m * k, 1), {m, k});
    const nn::network_call call = net.forward(here.work, operand{net.x(), x});
    std::vector<float> both = host_of(here, call.y);
    const tensor<float> dy = tensor_of(here, numbers(m * k, 2), {m, k});
    const std::vector<float> dx = host_of(here, net.backward(here.work, call, dy, true));
    both.insert(both.end(), dx.begin(), dx.end());
    EXPECT_EQ(counter.next(), other.next());
    return both;
  };
  EXPECT_TRUE(same_bits(y_and_dx(true), y_and_dx(false)));
}

// An eager backward runs the forward again, which rounds x and the weight: two kernels more.
TEST_P(networks, round_no_gradient_that_no_product_reads) {
  set.at("in.weight").grad = {};
  const auto kernels = [&](cast_mode casts) {
    const precision_scope in{{matrix_precision::full, casts}};
    nn::network net{budget, {.record = false}};
    net.add(nn::linear{set.at("in.weight"), set.at("in.bias")});
    const nn::network_call call =
        net.forward(here.work, operand{net.x(), tensor_of(here, numbers(m * k, 1), {m, k})});
    const tensor<float> dy = tensor_of(here, numbers(m * inner, 2), {m, inner});
    const std::uint64_t before = (*here.calls)[seam_call::kernel];
    net.backward(here.work, call, dy);
    return (*here.calls)[seam_call::kernel] - before;
  };
  EXPECT_EQ(kernels(cast_mode::bf16), kernels(cast_mode::none) + 2);
}

TEST_P(networks, take_images_from_the_host) {
  nn::network net = made();
  const std::vector<float> x = numbers(m * k, 1);
  const nn::network_call from_host = net.forward(here.work, net.x().from_host(x));
  counter.set(9, 0);
  nn::network other = made();
  const nn::network_call from_device =
      other.forward(here.work, operand{other.x(), tensor_of(here, x, {m, k})});
  EXPECT_TRUE(same_bits(host_of(here, from_host.y), host_of(here, from_device.y)));
}

TEST_P(networks, give_each_layer_its_own_options) {
  nn::network net{budget};
  net.add(nn::linear{set.at("in.weight"), set.at("in.bias")});
  net.add(nn::gelu{}, {.conflict = slots{2}});
  EXPECT_EQ(net.at(0).options().conflict, on_conflict{hold{}});
  EXPECT_EQ(net.at(1).options().conflict, on_conflict{slots{2}});
}

INSTANTIATE_TEST_SUITE_P(devices, networks, testing::ValuesIn(devices_under_test()),
                         name_of_device);

class refusals : public networks {};

TEST_P(refusals, of_a_network_name_what_is_missing) {
  nn::network net{budget};
  EXPECT_EQ(refusal([&] { net.x(); }), "network: there is no layer yet; add one");
  net.add(nn::dropout{0.5F, counter});
  const std::vector<float> x(4, 1.0F);
  const tensor<float> there = tensor_of(here, x, {2, 2});
  EXPECT_EQ(refusal([&] {
              net.infer(here.work, operand{net.x(), there});
            }),
            "network: there is no layer that inference runs; add one");
  EXPECT_EQ(refusal([&] { net.backward(here.work, {}, there); }),
            "network: this is no forward of this network as it is now; run one");
}

TEST_P(refusals, of_checkpointed_spans_say_how_they_nest) {
  nn::network net{budget};
  EXPECT_EQ(refusal([&] { net.end_checkpoint(); }),
            "network: no checkpointed span has begun here; call begin_checkpoint first");
  net.begin_checkpoint("one");
  EXPECT_EQ(refusal([&] { net.begin_checkpoint("two"); }),
            "network: checkpointed span 'two' has no label, or begins inside of another; name "
            "each, and end one before the next");
}

TEST_P(refusals, of_a_backward_say_what_it_was_called_with) {
  nn::network net{budget};
  net.add(nn::gelu{});
  const tensor<float> there = tensor_of(here, std::vector<float>(4, 1.0F), {2, 2});
  const nn::network_call call = net.forward(here.work, operand{net.x(), there});
  EXPECT_EQ(refusal([&] { net.backward(here.work, call, {}); }),
            "network: the backward has no gradient of y; give one");
  EXPECT_TRUE(net.backward(here.work, call, there, true));
  EXPECT_EQ(refusal([&] { net.backward(here.work, call, there, true); }),
            "network: this forward has had its backward; run another forward");
  const nn::network_call of_one = net.forward(here.work, operand{net.x(), there});
  net.add(nn::gelu{});
  EXPECT_EQ(refusal([&] { net.backward(here.work, of_one, there); }),
            "network: this is no forward of this network as it is now; run one");
}

INSTANTIATE_TEST_SUITE_P(devices, refusals, testing::Values("cpu"), name_of_device);

}  // namespace
}  // namespace reprise::test
