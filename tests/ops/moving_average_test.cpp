#include "reprise/ops/moving_average.hpp"

#include "tests/ops/bench.hpp"

namespace reprise::test {
namespace {

using floats = std::vector<float>;

floats averaged(op_bench& bench, float decay, const floats& value, const floats& average,
                place where = place::aligned) {
  const auto words = bench.put(floats{decay});
  const auto from = bench.put(value, where);
  const auto at = bench.put(average, where);
  launch(bench.on(), moving_average, read<float>{words.span()}, read<float>{from.span()},
         inout<float>{at.span()});
  return bench.take(at);
}

class moving_average_op : public op_on_device {};
INSTANTIATE_TEST_SUITE_P(devices, moving_average_op, testing::ValuesIn(plain_devices()),
                         device_case);

TEST_P(moving_average_op, rounds_each_operation_as_documented) {
  for (const std::size_t size : {0U, 1U, 31U, 70001U}) {
    const auto value = random_values<float>(size, 1);
    const auto before = random_values<float>(size, 2);
    for (const float decay : {0.0F, 0.9F, 0.999F, 1.0F}) {
      floats want;
      for (std::size_t i = 0; i < size; ++i) {
        const float kept = decay * before[i];
        const float moved = (1.0F - decay) * value[i];
        want.push_back(kept + moved);
      }
      expect_same_bits(averaged(bench(), decay, value, before), want);
      expect_same_bits(averaged(bench(), decay, value, before, place::shifted), want);
    }
  }
}

// Of the values 1, 2, 3, ... by a decay of d: a weighted mean, which lags by d / (1 - d).
TEST_P(moving_average_op, comes_to_lag_behind_a_value_that_grows) {
  floats average{1.0F};
  double want = 1;
  for (int step = 1; step <= 60; ++step) {
    average = averaged(bench(), 0.75F, {static_cast<float>(step)}, average);
    want = 0.75 * want + 0.25 * step;
    ASSERT_NEAR(static_cast<double>(average[0]), want, 1e-5);
  }
  EXPECT_NEAR(average[0], 60.0F - 3.0F, 1e-4F);
}

TEST_P(moving_average_op, refuses_sizes_that_do_not_fit) {
  const auto a = bench().put(floats(8));
  const auto in = [&](std::size_t count) { return read<float>{a.span().subview(0, count)}; };
  const auto at = [&](std::size_t count) { return inout<float>{a.span().subview(0, count)}; };
  EXPECT_THROW(launch(bench().on(), moving_average, in(2), in(8), at(8)), usage_error);
  EXPECT_THROW(launch(bench().on(), moving_average, in(1), in(7), at(8)), usage_error);
}

TEST(moving_average, the_cuts_between_threads_change_nothing) {
  const auto value = random_values<float>(70003, 3);
  const auto before = random_values<float>(70003, 4);
  const floats decay{0.9F};
  floats got = before;
  cpu_call call{{}, odd_pieces()};
  ops::moving_average_cpu(call, read<float>{view{decay.data(), 1}},
                          read<float>{view{value.data(), value.size()}},
                          inout<float>{view{got.data(), got.size()}});
  op_bench bench{"cpu", 1};
  expect_same_bits(got, averaged(bench, 0.9F, value, before));
}

}  // namespace
}  // namespace reprise::test
