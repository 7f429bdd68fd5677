// Ops inside of a step's body (grad/inline_pass.hpp): a forward, a loss and both backwards as one
// recording have the bits of the same ops run one by one, eagerly, with parameters of their own.
#include "reprise/grad/inline_pass.hpp"

#include <functional>
#include <memory>

#include "reprise/nn/dropout.hpp"
#include "reprise/nn/gelu.hpp"
#include "reprise/nn/linear.hpp"
#include "reprise/nn/sequence.hpp"
#include "reprise/nn/softmax_cross_entropy.hpp"
#include "reprise/replay/cache.hpp"
#include "tests/nn/support.hpp"

namespace reprise::test {
namespace {

constexpr std::int64_t m = 6;
constexpr std::int64_t k = 11;
constexpr std::int64_t hidden = 8;
constexpr std::int64_t classes = 4;

std::string refusal(const std::function<void()>& of) {
  try {
    of();
  } catch (const usage_error& refused) {
    return refused.what();
  }
  return "nothing was refused";
}

nn::parameter_specs specs() {
  return nn::joined(
      {nn::linear_parameters("in", hidden, k), nn::linear_parameters("out", classes, hidden)});
}

std::vector<std::int32_t> targets_of(unsigned seed) {
  std::vector<std::int32_t> all;
  for (unsigned i = 0; i < m; ++i) all.push_back(static_cast<std::int32_t>((i + seed) % classes));
  return all;
}

// What both runs are made of, each its own.
struct weights {
  weights(bench& on, unsigned seed = 3) : set{on.memory, on.work, specs(), seed} {}

  std::vector<float> gradients(bench& on) {
    std::vector<float> all;
    for (std::size_t i = 0; i < set.size(); ++i) {
      const auto one = read_back<float>(on.work, elements_of<const float>(set[i].grad));
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }

  nn::parameter_set set;
  philox_counter counter{9};
};

struct seen {
  std::vector<float> y, loss, dx, gradients;
};

// Each layer an op of its own, and nothing recorded.
class one_by_one {
 public:
  one_by_one(bench& on, byte_budget& budget)
      : on_{on}, net_{budget, eager}, loss_{nn::softmax_cross_entropy{}, budget, eager} {
    net_.add(nn::linear{own.set.at("in.weight"), own.set.at("in.bias")});
    net_.add(nn::gelu{});
    net_.add(nn::dropout{0.25F, own.counter});
    net_.add(nn::linear{own.set.at("out.weight"), own.set.at("out.bias")});
  }

  seen step(unsigned i, bool adds) {
    if (!adds) own.set.drop_gradients();
    const auto call =
        net_.forward(on_.work, operand{net_.x(), tensor_of(on_, numbers(m * k, i), {m, k})});
    const auto& op = loss_.op();
    const auto targets = targets_of(i);
    const forward_result loss =
        loss_.forward(on_.work, {{op.logits, call.y}, op.targets.from_host(targets)});
    const tensor<float> one = tensor_of(on_, {0.5F}, {1});
    const auto dlogits = loss_.backward(on_.work, loss.ticket, {gradient_of(op.loss, one)});
    const tensor<float> dx = net_.backward(on_.work, call, dlogits[op.logits], true);
    return {host_of(on_, call.y), host_of(on_, loss[op.loss]), host_of(on_, dx),
            own.gradients(on_)};
  }

  static constexpr graphed_options eager{.record = false};

 private:
  bench& on_;

 public:
  weights own{on_};

 private:
  nn::network net_;
  graphed_op<nn::softmax_cross_entropy> loss_;
};

// All of it as one step.
class whole_step {
 public:
  explicit whole_step(bench& on, input_mode mode = input_mode::staged)
      : on_{on}, x{declared.in<float>("x", {any, k}, mode)}, rule{on.memory, 1, on.work} {
    trunk.add(nn::linear{own.set.at("in.weight"), own.set.at("in.bias")})
        .add(nn::gelu{})
        .add(nn::dropout{0.25F, own.counter})
        .add(nn::linear{own.set.at("out.weight"), own.set.at("out.bias")});
    trunk_op = erase(std::make_shared<const nn::sequence>(trunk));
    loss_op = erase(std::make_shared<const nn::softmax_cross_entropy>(loss));
    include_op(declared, trunk_op, "trunk");
    include_op(declared, loss_op, "loss");
    key_by_precision(declared);
    what = std::make_unique<step>(declared, [this](step_scope& run) { body(run); });
  }

  step_result run(unsigned i, bool adds) {
    upload(on_.work, std::vector<std::int32_t>{adds ? 1 : 0}, rule.all());
    given_ = on_device(on_, numbers(m * k, i));
    const auto labels = targets_of(i);
    return cache.run(
        on_.work, *what,
        {x(given_.all(), {m, k}), targets.from_host(labels), dloss.from_host(std::array{0.5F})});
  }
  seen step_of(unsigned i, bool adds) {
    const step_result made = run(i, adds);
    const auto host = [&](const output<float>& out) {
      return read_back<float>(on_.work, made[out].get());
    };
    return {host(y), host(total), host(dx), own.gradients(on_)};
  }

 private:
  bench& on_;

 public:
  weights own{on_};
  nn::sequence trunk{"trunk"};
  nn::softmax_cross_entropy loss;
  erased_op trunk_op{signature{""}, {}, {}, false};
  erased_op loss_op{signature{""}, {}, {}, false};
  signature declared{"whole step"};
  const input<float> x;
  const input<std::int32_t> targets = declared.in<std::int32_t>("targets", {any});
  const input<float> dloss = declared.in<float>("dloss", {1});
  const output<float> y = declared.out<float>("y");
  const output<float> total = declared.out<float>("loss");
  const output<float> dx = declared.out<float>("dx");
  buffer<std::int32_t> rule;
  replay_cache cache{on_.opened};
  std::unique_ptr<step> what;
  std::function<void(inline_pass&)> instead;  // of the backwards

 private:
  void body(step_scope& run) {
    inline_pass ops{run, declared, [this](const parameter& to) {
                      return delivery{elements_of<float>(to.grad), rule.all()};
                    }};
    const auto made = ops.forward(trunk_op, {ops.given(x)}, {y.slot()});
    ops.forward(loss_op, {made[0], ops.given(targets)}, {total.slot()});
    if (instead) return instead(ops);
    const auto dlogits = ops.backward(1, loss_op, {ops.given(dloss)}, 1);
    ops.backward(0, trunk_op, {dlogits[0]}, 1, {dx.slot()});
  }

  buffer<float> given_;
};

void expect_same(const seen& one, const seen& other) {
  EXPECT_TRUE(same_bits(one.y, other.y));
  EXPECT_TRUE(same_bits(one.loss, other.loss));
  EXPECT_TRUE(same_bits(one.dx, other.dx));
  EXPECT_TRUE(same_bits(one.gradients, other.gradients));
}

class inline_passes : public on_each_device {};

TEST_P(inline_passes, make_a_whole_step_one_recording_with_the_bits_of_separate_ops) {
  one_by_one plain{here, budget};
  whole_step whole{here};
  for (unsigned i = 0; i < 6; ++i) {
    // Windows of two micro-batches, whose gradients are added up.
    expect_same(whole.step_of(i, i % 2 == 1), plain.step(i, i % 2 == 1));
  }
  EXPECT_EQ(whole.cache.counts().captured, 1U);
  EXPECT_EQ(whole.cache.counts().replayed, 5U);
  EXPECT_EQ(whole.own.counter.next(), plain.own.counter.next());
}

TEST_P(inline_passes, read_a_direct_input_where_it_lies) {
  one_by_one plain{here, budget};
  whole_step whole{here, input_mode::direct};
  for (unsigned i = 0; i < 3; ++i) expect_same(whole.step_of(i, false), plain.step(i, false));
  EXPECT_EQ(whole.cache.counts().replayed, 2U);
}

TEST_P(inline_passes, run_in_the_precision_in_force_which_is_a_part_of_the_key) {
  one_by_one plain{here, budget};
  whole_step whole{here};
  for (unsigned i = 0; i < 4; ++i) {
    const precision_scope in{
        {matrix_precision::full, i % 2 == 0 ? cast_mode::none : cast_mode::bf16}};
    expect_same(whole.step_of(i, false), plain.step(i, false));
  }
  EXPECT_EQ(whole.cache.counts().captured, 2U);
  EXPECT_EQ(whole.cache.counts().replayed, 2U);
}

TEST_P(inline_passes, follow_no_gradient_buffer_that_has_moved_since_the_capture) {
  one_by_one plain{here, budget};
  whole_step whole{here};
  expect_same(whole.step_of(0, false), plain.step(0, false));
  parameter& moved = whole.own.set.at("in.weight");
  const buffer<float> other{here.memory, moved.grad.shape.count(), here.work};
  moved.grad = as_tensor(other.all(), moved.grad.shape);
  const step_result made = whole.run(1, false);
  ASSERT_NE(made.why, nullptr);
  EXPECT_NE(made.why->text().find("gradient buffer of trunk"), std::string::npos)
      << made.why->text();
  const auto dx = read_back<float>(here.work, made[whole.dx].get());
  const seen expected = plain.step(1, false);
  EXPECT_TRUE(same_bits(dx, expected.dx));
  EXPECT_TRUE(same_bits(whole.own.gradients(here), expected.gradients));
}

TEST_P(inline_passes, refuse_a_backward_that_has_no_forward_of_its_own) {
  whole_step whole{here};
  const auto refused = [&](std::function<void(inline_pass&)> does) {
    whole.instead = std::move(does);
    return refusal([&] { whole.run(0, false); });
  };
  const auto dloss = [&](inline_pass& ops) { return ops.given(whole.dloss); };
  EXPECT_EQ(refused([&](inline_pass& ops) { ops.backward(2, whole.loss_op, {dloss(ops)}, 1); }),
            "step 'whole step': backward 2 of op 'softmax_cross_entropy' inside of it has no "
            "forward, of which 2 ran; run the forward first");
  EXPECT_EQ(refused([&](inline_pass& ops) { ops.backward(0, whole.loss_op, {dloss(ops)}, 1); }),
            "step 'whole step': backward 0 of op 'softmax_cross_entropy' inside of it comes for "
            "the forward of another op; give the op that ran");
  EXPECT_EQ(refused([&](inline_pass& ops) {
              ops.backward(1, whole.loss_op, {dloss(ops)}, 1);
              ops.backward(1, whole.loss_op, {dloss(ops)}, 1);
            }),
            "step 'whole step': backward 1 of op 'softmax_cross_entropy' inside of it runs twice; "
            "run the forward once more for it");
}

TEST_P(inline_passes, without_a_deliverer_train_no_parameter) {
  whole_step whole{here};
  signature declared{"half step"};
  const input<float> x = declared.in<float>("x", {any, k});
  include_op(declared, whole.trunk_op, "trunk");
  const step half{declared, [&](step_scope& run) {
                    inline_pass ops{run, declared};
                    const auto made = ops.forward(whole.trunk_op, {ops.given(x)});
                    ops.backward(0, whole.trunk_op, {made[0]}, 0);
                  }};
  const auto values = numbers(m * k, 1);
  EXPECT_EQ(refusal([&] { whole.cache.run(here.work, half, {x.from_host(values)}); }),
            "step 'half step': backward 0 of op 'trunk' inside of it delivers the gradient of a "
            "parameter, and this pass takes none; give it a deliverer");
}

INSTANTIATE_TEST_SUITE_P(each_device, inline_passes, testing::ValuesIn(devices_under_test()),
                         name_of_device);

}  // namespace
}  // namespace reprise::test
