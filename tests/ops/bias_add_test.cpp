#include "reprise/ops/bias_add.hpp"

#include "tests/ops/bench.hpp"

namespace reprise::test {
namespace {

std::vector<float> biased(op_bench& bench, const std::vector<float>& x,
                          const std::vector<float>& bias, place where = place::aligned) {
  const auto xs = bench.put(x, where);
  const auto biases = bench.put(bias, where);
  const auto to = bench.room<float>(x.size(), where);
  launch(bench.on(), bias_add, read<float>{xs.span()}, read<float>{biases.span()},
         write<float>{to.span()});
  return bench.take(to);
}

class bias_add_op : public op_on_device {};
INSTANTIATE_TEST_SUITE_P(devices, bias_add_op, testing::ValuesIn(plain_devices()), device_case);

TEST_P(bias_add_op, adds_the_same_vector_to_each_row) {
  for (const std::size_t width : {1U, 7U, 256U, 1000U}) {
    const auto x = random_values<float>(9 * width, 1);
    const auto bias = random_values<float>(width, 2);
    std::vector<float> expected;
    for (std::size_t i = 0; i < x.size(); ++i) expected.push_back(x[i] + bias[i % width]);
    expect_same_bits(biased(bench(), x, bias), expected);
    expect_same_bits(biased(bench(), x, bias, place::shifted), expected);
  }
  EXPECT_TRUE(biased(bench(), {}, {1, 2}).empty());
}

TEST_P(bias_add_op, works_in_place) {
  const auto x = random_values<float>(3 * 100, 3);
  const auto bias = random_values<float>(100, 4);
  const auto xs = bench().put(x);
  const auto biases = bench().put(bias);
  launch(bench().on(), bias_add, read<float>{xs.span()}, read<float>{biases.span()},
         write<float>{xs.span()});
  expect_same_bits(bench().take(xs), biased(bench(), x, bias));
}

TEST_P(bias_add_op, refuses_sizes_that_do_not_fit) {
  const auto a = bench().put(std::vector<float>(12));
  const auto run = [&](std::size_t x, std::size_t bias, std::size_t out) {
    launch(bench().on(), bias_add, read<float>{a.span().subview(0, x)},
           read<float>{a.span().subview(0, bias)}, write<float>{a.span().subview(0, out)});
  };
  EXPECT_NO_THROW(run(12, 4, 12));
  EXPECT_THROW(run(12, 5, 12), usage_error);
  EXPECT_THROW(run(12, 0, 12), usage_error);
  EXPECT_THROW(run(12, 4, 8), usage_error);
}

TEST(bias_add, the_cuts_between_threads_change_nothing) {
  const auto x = random_values<float>(301 * 100, 5);
  const auto bias = random_values<float>(100, 6);
  std::vector<float> out(x.size());
  cpu_call call{{}, odd_pieces()};
  ops::bias_add_cpu(call, read<float>{view{x.data(), x.size()}},
                    read<float>{view{bias.data(), bias.size()}},
                    write<float>{view{out.data(), out.size()}});
  op_bench bench{"cpu", 1};
  expect_same_bits(out, biased(bench, x, bias));
}

}  // namespace
}  // namespace reprise::test
