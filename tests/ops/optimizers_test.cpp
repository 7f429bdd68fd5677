#include "reprise/ops/optimizers.hpp"

#include "tests/ops/bench.hpp"

namespace reprise::test {
namespace {

using floats = std::vector<float>;

const std::vector<std::size_t> sizes{0, 1, 31, 1000, 70001};

struct sgd_state {
  floats velocity, weight;
};

sgd_state stepped(op_bench& bench, const floats& words, const floats& grad, const sgd_state& from,
                  place where = place::aligned) {
  const auto by = bench.put(words);
  const auto grads = bench.put(grad, where);
  const auto velocity = bench.put(from.velocity, where);
  const auto weight = bench.put(from.weight, where);
  launch(bench.on(), sgd, read<float>{by.span()}, read<float>{grads.span()},
         inout<float>{velocity.span()}, inout<float>{weight.span()});
  return {bench.take(velocity), bench.take(weight)};
}

struct adamw_state {
  floats m, v, weight;
};

adamw_state stepped(op_bench& bench, const floats& words, const floats& grad,
                    const adamw_state& from, place where = place::aligned) {
  const auto by = bench.put(words);
  const auto grads = bench.put(grad, where);
  const auto m = bench.put(from.m, where);
  const auto v = bench.put(from.v, where);
  const auto weight = bench.put(from.weight, where);
  launch(bench.on(), adamw, read<float>{by.span()}, read<float>{grads.span()},
         inout<float>{m.span()}, inout<float>{v.span()}, inout<float>{weight.span()});
  return {bench.take(m), bench.take(v), bench.take(weight)};
}

// The words of step t, from 1.
floats adamw_words(float rate, float beta1, float beta2, float decay, int t) {
  return {rate,
          beta1,
          beta2,
          1e-8F,
          decay,
          static_cast<float>(1 - std::pow(static_cast<double>(beta1), t)),
          static_cast<float>(1 - std::pow(static_cast<double>(beta2), t))};
}

class optimizer_op : public op_on_device {};
INSTANTIATE_TEST_SUITE_P(devices, optimizer_op, testing::ValuesIn(plain_devices()), device_case);

TEST_P(optimizer_op, sgd_rounds_each_operation_as_documented) {
  for (const std::size_t size : sizes) {
    const auto grad = random_values<float>(size, 1);
    const sgd_state from{random_values<float>(size, 2), random_values<float>(size, 3)};
    floats velocity;
    floats weight;
    floats plain_weight;
    for (std::size_t i = 0; i < size; ++i) {
      const float decay = 0.01F * from.weight[i];
      const float g = grad[i] + decay;
      const float kept = 0.9F * from.velocity[i];
      velocity.push_back(kept + g);
      const float along = 0.1F * velocity[i];
      weight.push_back(from.weight[i] - along);
      const float straight = 0.1F * g;
      plain_weight.push_back(from.weight[i] - straight);
    }
    for (const place where : {place::aligned, place::shifted}) {
      const sgd_state got = stepped(bench(), {0.1F, 0.9F, 0.01F}, grad, from, where);
      expect_same_bits(got.velocity, velocity);
      expect_same_bits(got.weight, weight);
      // Without a velocity momentum is not used, whatever it is.
      const sgd_state plain =
          stepped(bench(), {0.1F, std::nanf(""), 0.01F}, grad, sgd_state{{}, from.weight}, where);
      expect_same_bits(plain.weight, plain_weight);
    }
  }
}

TEST_P(optimizer_op, sgd_runs_down_a_slope) {
  // f = w^2 / 2, whose gradient is w; momentum of 0.5 and a rate of 0.1 in double beside it.
  sgd_state at{{0.0F}, {3.0F}};
  double velocity = 0;
  double weight = 3;
  for (int step = 0; step < 50; ++step) {
    at = stepped(bench(), {0.1F, 0.5F, 0.0F}, at.weight, at);
    velocity = 0.5 * velocity + weight;
    weight -= 0.1 * velocity;
    ASSERT_NEAR(static_cast<double>(at.weight[0]), weight, 1e-5) << step;
  }
  EXPECT_LT(std::abs(at.weight[0]), 0.01F);
}

TEST_P(optimizer_op, adamw_agrees_with_a_double_reference_over_steps) {
  for (const std::size_t size : sizes) {
    SCOPED_TRACE(size);
    adamw_state at{floats(size), floats(size), random_values<float>(size, 4)};
    std::vector<double> m(size);
    std::vector<double> v(size);
    std::vector<double> weight(at.weight.begin(), at.weight.end());
    for (int t = 1; t <= 5; ++t) {
      const auto grad = random_values<float>(size, 10 + static_cast<std::uint64_t>(t));
      const floats words = adamw_words(0.01F, 0.9F, 0.99F, 0.1F, t);
      const std::vector<double> w(words.begin(), words.end());
      for (std::size_t i = 0; i < size; ++i) {
        const auto g = static_cast<double>(grad[i]);
        weight[i] -= w[0] * w[4] * weight[i];
        m[i] = w[1] * m[i] + (1 - w[1]) * g;
        v[i] = w[2] * v[i] + (1 - w[2]) * g * g;
        weight[i] -= w[0] * (m[i] / w[5]) / (std::sqrt(v[i] / w[6]) + w[3]);
      }
      at = stepped(bench(), words, grad, at);
    }
    expect_near(at.m, m, 1e-6);
    expect_near(at.v, v, 1e-6);
    expect_near(at.weight, weight, 1e-6);
  }
}

TEST_P(optimizer_op, adamw_rounds_each_operation_as_documented) {
  const std::size_t size = 1003;
  const auto grad = random_values<float>(size, 5);
  adamw_state from{random_values<float>(size, 6), random_values<float>(size, 7),
                   random_values<float>(size, 8)};
  for (float& one : from.v) one = std::abs(one);
  const floats words = adamw_words(0.003F, 0.9F, 0.999F, 0.05F, 3);
  adamw_state want;
  for (std::size_t i = 0; i < size; ++i) {
    const float m_kept = 0.9F * from.m[i];
    const float m_new = (1.0F - 0.9F) * grad[i];
    want.m.push_back(m_kept + m_new);
    const float v_kept = 0.999F * from.v[i];
    const float square = grad[i] * grad[i];
    const float v_new = (1.0F - 0.999F) * square;
    want.v.push_back(v_kept + v_new);
    const float decay = 0.003F * 0.05F * from.weight[i];
    const float decayed = from.weight[i] - decay;
    const float along = want.m[i] / words[5];
    const float size_of = std::sqrt(want.v[i] / words[6]) + 1e-8F;
    const float step = 0.003F * (along / size_of);
    want.weight.push_back(decayed - step);
  }
  for (const place where : {place::aligned, place::shifted}) {
    const adamw_state got = stepped(bench(), words, grad, from, where);
    expect_same_bits(got.m, want.m);
    expect_same_bits(got.v, want.v);
    expect_same_bits(got.weight, want.weight);
  }
}

TEST_P(optimizer_op, decay_pulls_where_there_is_no_gradient) {
  const adamw_state still{{0.0F}, {0.0F}, {2.0F}};
  const adamw_state got = stepped(bench(), adamw_words(0.1F, 0.9F, 0.99F, 0.5F, 1), {0.0F}, still);
  EXPECT_EQ(got.weight[0], 2.0F - (0.1F * 0.5F) * 2.0F);
  const adamw_state free = stepped(bench(), adamw_words(0.1F, 0.9F, 0.99F, 0.0F, 1), {0.0F}, still);
  EXPECT_EQ(free.weight[0], 2.0F);
}

TEST_P(optimizer_op, refuse_sizes_that_do_not_fit) {
  const auto a = bench().put(floats(16));
  const auto in = [&](std::size_t count) { return read<float>{a.span().subview(0, count)}; };
  const auto at = [&](std::size_t count) { return inout<float>{a.span().subview(0, count)}; };
  EXPECT_THROW(launch(bench().on(), sgd, in(2), in(8), at(8), at(8)), usage_error);
  EXPECT_THROW(launch(bench().on(), sgd, in(3), in(7), at(8), at(8)), usage_error);
  EXPECT_THROW(launch(bench().on(), sgd, in(3), in(8), at(7), at(8)), usage_error);
  EXPECT_THROW(launch(bench().on(), adamw, in(6), in(8), at(8), at(8), at(8)), usage_error);
  EXPECT_THROW(launch(bench().on(), adamw, in(7), in(7), at(8), at(8), at(8)), usage_error);
  EXPECT_THROW(launch(bench().on(), adamw, in(7), in(8), at(7), at(8), at(8)), usage_error);
  EXPECT_THROW(launch(bench().on(), adamw, in(7), in(8), at(8), at(7), at(8)), usage_error);
}

TEST(optimizers, the_cuts_between_threads_change_nothing) {
  const auto grad = random_values<float>(70003, 9);
  const adamw_state from{floats(70003), floats(70003), random_values<float>(70003, 10)};
  const floats words = adamw_words(0.01F, 0.9F, 0.99F, 0.1F, 1);
  adamw_state got = from;
  cpu_call call{{}, odd_pieces()};
  const auto at = [](floats& all) { return inout<float>{view{all.data(), all.size()}}; };
  ops::adamw_cpu(call, read<float>{view{words.data(), words.size()}},
                 read<float>{view{grad.data(), grad.size()}}, at(got.m), at(got.v), at(got.weight));
  op_bench bench{"cpu", 1};
  const adamw_state expected = stepped(bench, words, grad, from);
  expect_same_bits(got.m, expected.m);
  expect_same_bits(got.v, expected.v);
  expect_same_bits(got.weight, expected.weight);
}

}  // namespace
}  // namespace reprise::test
