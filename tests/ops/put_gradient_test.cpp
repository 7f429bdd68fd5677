#include "reprise/ops/put_gradient.hpp"

#include "tests/ops/bench.hpp"

namespace reprise::test {
namespace {

std::vector<float> after(op_bench& bench, const std::vector<float>& sum,
                         const std::vector<float>& old, gradient_rule rule,
                         place where = place::aligned) {
  const auto sums = bench.put(sum, where);
  const auto grad = bench.put(old, where);
  launch(bench.on(), put_gradient, read<float>{sums.span()}, inout<float>{grad.span()}, rule);
  return bench.take(grad);
}

class put_gradient_op : public op_on_device {};
INSTANTIATE_TEST_SUITE_P(devices, put_gradient_op, testing::ValuesIn(plain_devices()), device_case);

TEST_P(put_gradient_op, writes_adds_or_leaves) {
  for (const std::size_t count : {1U, 7U, 1000U, 70000U}) {
    const auto sum = random_values<float>(count, 1);
    const auto old = random_values<float>(count, 2);
    std::vector<float> added;
    for (std::size_t i = 0; i < count; ++i) added.push_back(old[i] + sum[i]);
    for (const auto where : {place::aligned, place::shifted}) {
      expect_same_bits(after(bench(), sum, old, gradient_rule::write, where), sum);
      expect_same_bits(after(bench(), sum, old, gradient_rule::add, where), added);
      expect_same_bits(after(bench(), sum, old, gradient_rule::leave, where), old);
      expect_same_bits(after(bench(), sum, old, gradient_rule{17}, where), old);
    }
  }
  EXPECT_TRUE(after(bench(), {}, {}, gradient_rule::add).empty());
}

TEST_P(put_gradient_op, refuses_sizes_that_differ) {
  EXPECT_THROW(after(bench(), {1, 2}, {1, 2, 3}, gradient_rule::write), usage_error);
  EXPECT_THROW(after(bench(), {1, 2}, {1}, gradient_rule::leave), usage_error);
}

TEST(put_gradient, the_cuts_between_threads_change_nothing) {
  const auto sum = random_values<float>(70001, 3);
  const auto old = random_values<float>(70001, 4);
  std::vector<float> grad = old;
  cpu_call call{{}, odd_pieces()};
  ops::put_gradient_cpu(call, read<float>{view{sum.data(), sum.size()}},
                        inout<float>{view{grad.data(), grad.size()}}, gradient_rule::add);
  op_bench bench{"cpu", 1};
  expect_same_bits(grad, after(bench, sum, old, gradient_rule::add));
}

}  // namespace
}  // namespace reprise::test
