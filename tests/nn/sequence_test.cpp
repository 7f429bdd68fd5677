// Layers that are one op: counts, inference, what their backward leaves out, marks, and refusals.
// That they have the bits of a plain run under every policy is replays_test's.
#include "reprise/nn/sequence.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "reprise/nn/batch_norm.hpp"
#include "reprise/nn/dropout.hpp"
#include "reprise/nn/frozen_batch_norm.hpp"

#include "reprise/nn/gelu.hpp"
#include "reprise/nn/layer_norm.hpp"
#include "reprise/nn/linear.hpp"
#include "tests/nn/support.hpp"

namespace reprise::test {
namespace {

constexpr std::int64_t m = 5;
constexpr std::int64_t width = 8;

std::string refusal(const std::function<void()>& of) {
  try {
    of();
  } catch (const usage_error& refused) {
    return refused.what();
  }
  return "nothing was refused";
}

nn::parameter_specs many_layers(int count) {
  nn::parameter_specs all;
  for (int i = 0; i < count; ++i) {
    const std::string name = "layer " + std::to_string(i);
    for (const nn::parameter_specs& more : {nn::linear_parameters(name + " product", width, width),
                                            nn::norm_parameters(name + " norm", width)}) {
      all.insert(all.end(), more.begin(), more.end());
    }
  }
  return all;
}

// `count` times linear, layer norm, gelu.
template <class Net>
void add_layers(Net& net, nn::parameter_set& set, int count) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    net.add(nn::linear{set[4 * i], set[4 * i + 1]});
    net.add(nn::layer_norm{set[4 * i + 2], set[4 * i + 3]});
    net.add(nn::gelu{});
  }
}

class sequences : public on_each_device {};

TEST_P(sequences, of_more_than_64_parameters_have_the_gradients_of_layers_apart) {
  constexpr int layers = 24;
  nn::parameter_set set{here.memory, here.work, many_layers(layers), 3};
  nn::parameter_set apart{here.memory, here.work, many_layers(layers), 3};
  nn::sequence deep{"deep"};
  add_layers(deep, set, layers);
  graphed_op net{deep, budget};
  nn::network plain{budget, {.record = false}};
  add_layers(plain, apart, layers);
  for (unsigned i = 0; i < 4; ++i) {
    const tensor<float> x = tensor_of(here, numbers(m * width, i), {m, width});
    const tensor<float> dy = tensor_of(here, numbers(m * width, 50 + i), {m, width});
    const forward_result call = net.forward(here.work, {operand{deep.x, x}});
    const nn::network_call other = plain.forward(here.work, operand{plain.x(), x});
    EXPECT_TRUE(same_bits(host_of(here, call[deep.y]), host_of(here, other.y)));
    net.backward(here.work, call.ticket, {gradient_of(deep.y, dy)}, wanted::parameters_only());
    plain.backward(here.work, other, dy);
    for (std::size_t p = 0; p < set.size(); ++p) {
      EXPECT_TRUE(
          same_bits(gradient_of_parameter(here, set[p]), gradient_of_parameter(here, apart[p])))
          << set.name(p) << ", call " << i;
    }
  }
  const grad_counts counts = net.counts();
  EXPECT_EQ(counts.forward_capture, 1U);
  EXPECT_EQ(counts.forward_replay, 3U);
  EXPECT_EQ(counts.backward_capture, 1U);
  EXPECT_EQ(counts.backward_replay, 3U);
}

TEST_P(sequences, leave_dropout_out_of_inference) {
  nn::parameter_set set{here.memory, here.work, nn::linear_parameters("a", width, width), 3};
  philox_counter counter{1};
  nn::sequence whole{"whole"};
  whole.add(nn::dropout{0.5F, counter}).add(nn::linear{set[0], set[1]});
  nn::network net{budget};
  net.add(whole);
  nn::network without{budget};
  without.add(nn::linear{set[0], set[1]});
  const tensor<float> x = tensor_of(here, numbers(m * width, 1), {m, width});
  EXPECT_TRUE(same_bits(host_of(here, net.infer(here.work, operand{net.x(), x})),
                        host_of(here, without.infer(here.work, operand{without.x(), x}))));
  EXPECT_EQ(counter.next(), philox_counter{1}.next());
}

TEST_P(sequences, infer_by_running_statistics) {
  nn::parameter_set set{here.memory, here.work, nn::norm_parameters("a", width), 3};
  nn::running_stats stats{here.memory, width, here.work};
  nn::sequence whole{"whole"};
  whole.add(nn::batch_norm{set[0], set[1], stats});
  nn::network net{budget};
  net.add(whole);
  nn::network frozen{budget};
  frozen.add(nn::frozen_batch_norm{set[0], set[1], stats});
  const tensor<float> x = tensor_of(here, numbers(m * width, 1), {m, width});
  net.backward(here.work, net.forward(here.work, operand{net.x(), x}), x);
  EXPECT_TRUE(same_bits(host_of(here, net.infer(here.work, operand{net.x(), x})),
                        host_of(here, frozen.infer(here.work, operand{frozen.x(), x}))));
}

// Layers in front of the first that trains run no backward, where nobody wants the gradient of x.
TEST_P(sequences, run_no_backward_in_front_of_what_trains) {
  nn::parameter_set set{here.memory, here.work, nn::linear_parameters("a", width, width), 3};
  nn::sequence whole{"whole"};
  whole.add(nn::gelu{}).add(nn::gelu{}).add(nn::linear{set[0], set[1]});
  graphed_op net{whole, budget, {.record = false}};
  const auto kernels_of = [&](const wanted& what) {
    const tensor<float> x = tensor_of(here, numbers(m * width, 1), {m, width});
    const forward_result call = net.forward(here.work, {operand{whole.x, x}});
    std::vector<std::string> labels;
    const submission_watch watch{[&](stream_ref, const work& each) {
      if (each.kind == work_kind::kernel) labels.emplace_back(each.label);
    }};
    net.backward(here.work, call.ticket, {gradient_of(whole.y, x)}, what);
    return std::ranges::count(labels, "gelu_grad");
  };
  EXPECT_EQ(kernels_of({}), 2);
  EXPECT_EQ(kernels_of(wanted::parameters_only()), 0);
}

TEST_P(sequences, name_the_first_layer_that_cannot_be_part_of_one) {
  nn::parameter_set set{here.memory, here.work, nn::linear_parameters("a", width, width), 3};
  philox_counter one{1};
  philox_counter other{2};
  nn::sequence whole{"whole"};
  whole.add(nn::dropout{0.5F, one});
  EXPECT_EQ(refusal([&] {
              whole.add(nn::dropout{0.5F, other});
            }),
            "step 'whole': its part '1 dropout' draws from another random counter; one step draws "
            "from one, so give all parts the same");
  nn::sequence none{"none"};
  graphed_op net{none, budget};
  const tensor<float> x = tensor_of(here, numbers(m * width, 1), {m, width});
  EXPECT_EQ(refusal([&] {
              net.forward(here.work, {operand{none.x, x}});
            }),
            "sequence 'none': there is no layer yet; add one");
}

INSTANTIATE_TEST_SUITE_P(devices, sequences, testing::ValuesIn(devices_under_test()),
                         name_of_device);

}  // namespace
}  // namespace reprise::test
