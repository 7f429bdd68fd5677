// The binary cross entropy of logits: its formula, its gradients, and its bits under every policy.
#include "reprise/nn/binary_cross_entropy.hpp"

#include <array>

#include "tests/nn/host_ops.hpp"
#include "tests/nn/plain_network.hpp"
#include "tests/nn/support.hpp"

namespace reprise::test {
namespace {

constexpr std::int64_t m = 6;
constexpr std::int64_t width = 11;

std::vector<float> logits_of(unsigned seed) {
  std::vector<float> logits = numbers(m * width, seed);
  for (float& value : logits) value *= 4;
  return logits;
}
std::vector<float> shares_of(unsigned seed) {
  std::vector<float> targets = numbers(m * width, seed);
  for (float& value : targets) value = (value + 1) / 2;
  return targets;
}

class binary_cross_entropies : public on_each_device {};

TEST_P(binary_cross_entropies, have_the_gradients_of_their_formula_also_of_their_targets) {
  graphed_op loss{nn::binary_cross_entropy{}, budget};
  const nn::binary_cross_entropy& op = loss.op();
  const host_values logits = widened(logits_of(1));
  const host_values targets = widened(shares_of(2));
  const tensor<float> x = tensor_of(here, logits_of(1), {m, width});
  const tensor<float> t = tensor_of(here, shares_of(2), {m, width});
  const tensor<float> half = tensor_of(here, {0.5F}, {1});
  for (int again = 0; again < 2; ++again) {
    const forward_result made =
        loss.forward(here.work, {operand{op.logits, x}, operand{op.targets, t}});
    const grad_result formed = loss.backward(here.work, made.ticket, {gradient_of(op.loss, half)});
    expect_near(host_of(here, made[op.loss]), {host_binary_cross_entropy(logits, targets)},
                "the loss");
    expect_near(
        host_of(here, formed[op.logits]),
        central_differences(
            [&](const host_values& at) { return host_binary_cross_entropy(at, targets) / 2; },
            logits),
        "of the logits");
    expect_near(
        host_of(here, formed[op.targets]),
        central_differences(
            [&](const host_values& at) { return host_binary_cross_entropy(logits, at) / 2; },
            targets),
        "of the targets");
  }
  EXPECT_EQ(loss.counts().forward_replay, 1U);
  EXPECT_EQ(loss.counts().backward_replay, 1U);
}

TEST_P(binary_cross_entropies, have_the_bits_of_a_plain_run_whoever_runs_them) {
  plain_desk desk{here.memory, here.work};
  for (const graphed_options& options : {graphed_options{.conflict = hold{}},
                                         {.conflict = recompute{}},
                                         {.conflict = slots{2}},
                                         {.record = false}}) {
    SCOPED_TRACE(text_of(options));
    graphed_op loss{nn::binary_cross_entropy{}, budget, options};
    const nn::binary_cross_entropy& op = loss.op();
    for (unsigned round = 0; round < 3; ++round) {
      std::array<forward_result, 2> calls;
      std::array<plain_loss, 2> expected;
      for (unsigned i = 0; i < 2; ++i) {
        const std::vector<float> x = logits_of(10 * round + i);
        const std::vector<float> t = shares_of(100 + 10 * round + i);
        calls[i] = loss.forward(here.work, {operand{op.logits, tensor_of(here, x, {m, width})},
                                            operand{op.targets, tensor_of(here, t, {m, width})}});
        expected[i] = plain_binary_cross_entropy(desk, {desk.upload(x), m, width},
                                                 {desk.upload(t), m, width}, 0.25F);
        EXPECT_TRUE(same_bits(host_of(here, calls[i][op.loss]),
                              read_back<float>(here.work, expected[i].loss->all())));
      }
      for (unsigned i = 0; i < 2; ++i) {
        const grad_result got = loss.backward(here.work, calls[i].ticket,
                                              {gradient_of(op.loss, tensor_of(here, {0.25F}, {1}))},
                                              wanted::only(op.logits));
        EXPECT_TRUE(same_bits(host_of(here, got[op.logits]),
                              read_back<float>(here.work, expected[i].dx.all())));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(devices, binary_cross_entropies, testing::ValuesIn(devices_under_test()),
                         name_of_device);

}  // namespace
}  // namespace reprise::test
