#include "reprise/ops/narrowing.hpp"

#include <limits>

#include "tests/ops/bench.hpp"

namespace reprise::test {
namespace {

std::vector<bf16> narrowed(op_bench& bench, const std::vector<float>& x,
                           place where = place::aligned) {
  const auto xs = bench.put(x, where);
  const auto to = bench.room<bf16>(x.size(), where);
  launch(bench.on(), narrow_to_bf16, read<float>{xs.span()}, write<bf16>{to.span()});
  return bench.take(to);
}

class narrowing_op : public op_on_device {};
INSTANTIATE_TEST_SUITE_P(devices, narrowing_op, testing::ValuesIn(plain_devices()), device_case);

TEST_P(narrowing_op, rounds_each_element_to_the_nearest) {
  for (const std::size_t count : {1U, 8U, 1003U, 4096U}) {
    const auto x = random_values<float>(count, 1, 100.0f);
    std::vector<double> want(x.begin(), x.end());
    for (const auto where : {place::aligned, place::shifted}) {
      expect_near(narrowed(bench(), x, where), want, 0.0);
    }
    expect_same_bits(narrowed(bench(), x, place::shifted), narrowed(bench(), x));
  }
  EXPECT_TRUE(narrowed(bench(), {}).empty());
}

TEST_P(narrowing_op, sends_ties_to_the_even_one_and_keeps_what_is_no_number) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const auto got = narrowed(bench(), {1.0f + 0x1p-8f, 1.0f + 0x1p-7f + 0x1p-8f, -infinity,
                                      std::numeric_limits<float>::max(), -0.0f});
  expect_same_bits(got, {bf16{0x3f80}, bf16{0x3f82}, bf16{0xff80}, bf16{0x7f80}, bf16{0x8000}});
  const auto none = narrowed(bench(), {std::numeric_limits<float>::quiet_NaN()});
  EXPECT_TRUE(std::isnan(widen(none.front())));
}

TEST_P(narrowing_op, refuses_sizes_that_differ) {
  const auto xs = bench().put(std::vector<float>(4));
  const auto to = bench().room<bf16>(3);
  EXPECT_THROW(launch(bench().on(), narrow_to_bf16, read<float>{xs.span()}, write<bf16>{to.span()}),
               usage_error);
}

TEST(narrowing, the_cuts_between_threads_change_nothing) {
  const auto x = random_values<float>(70001, 2);
  std::vector<bf16> out(x.size());
  cpu_call call{{}, odd_pieces()};
  ops::narrow_to_bf16_cpu(call, read<float>{view{x.data(), x.size()}},
                          write<bf16>{view{out.data(), out.size()}});
  op_bench bench{"cpu", 1};
  expect_same_bits(out, narrowed(bench, x));
}

}  // namespace
}  // namespace reprise::test
