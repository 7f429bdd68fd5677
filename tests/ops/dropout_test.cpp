#include "reprise/ops/dropout.hpp"

#include "tests/ops/bench.hpp"

namespace reprise::test {
namespace {

using floats = std::vector<float>;

struct draws_at {
  std::uint64_t seed, counter, offset;
};

floats dropped(op_bench& bench, const floats& x, const draws_at& at, float rate,
               place where = place::aligned) {
  const auto xs = bench.put(x, where);
  const auto base = bench.put(std::vector<std::uint64_t>{at.seed, at.counter});
  const auto to = bench.room<float>(x.size(), where);
  launch(bench.on(), dropout, read<float>{xs.span()}, read<std::uint64_t>{base.span()},
         write<float>{to.span()}, at.offset, rate);
  return bench.take(to);
}

floats uniform(op_bench& bench, std::size_t size, const draws_at& at) {
  const auto base = bench.put(std::vector<std::uint64_t>{at.seed, at.counter});
  const auto to = bench.room<float>(size);
  launch(bench.on(), random_uniform, read<std::uint64_t>{base.span()}, write<float>{to.span()},
         at.offset);
  return bench.take(to);
}

class dropout_op : public op_on_device {};
INSTANTIATE_TEST_SUITE_P(devices, dropout_op, testing::ValuesIn(plain_devices()), device_case);

TEST_P(dropout_op, keeps_what_random_uniform_draws_at_or_above_the_rate) {
  const draws_at at{0x1234567890, 100, 7};
  for (const std::size_t size : {0U, 1U, 3U, 4U, 5U, 1003U, 40001U}) {
    for (const float rate : {0.1F, 0.5F, 0.9F}) {
      const auto x = random_values<float>(size, 1);
      const auto u = uniform(bench(), size, at);
      const float factor = 1.0F / (1.0F - rate);
      floats expected;
      for (std::size_t i = 0; i < size; ++i) {
        expected.push_back(u[i] >= rate ? x[i] * factor : 0.0F);
      }
      expect_same_bits(dropped(bench(), x, at, rate), expected);
      expect_same_bits(dropped(bench(), x, at, rate, place::shifted), expected);
    }
  }
}

TEST_P(dropout_op, a_number_that_is_the_rate_itself_is_kept) {
  const draws_at at{3, 0, 0};
  const auto u = uniform(bench(), 64, at);
  const floats ones(64, 1.0F);
  const auto kept = dropped(bench(), ones, at, u[5]);
  const auto not_kept = dropped(bench(), ones, at, u[5] + 0x1p-24F);
  EXPECT_GT(kept[5], 0.0F);
  EXPECT_EQ(not_kept[5], 0.0F);
}

TEST_P(dropout_op, drops_about_the_rate_and_keeps_the_mean) {
  const auto y = dropped(bench(), floats(1 << 20, 1.0F), {5, 6, 7}, 0.25F);
  double sum = 0;
  std::size_t zeros = 0;
  for (const float one : y) {
    sum += static_cast<double>(one);
    zeros += one == 0.0F ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(zeros), 0.25 * (1 << 20), 3000);  // deviation 443
  EXPECT_NEAR(sum / (1 << 20), 1.0, 0.004);
}

TEST_P(dropout_op, at_rate_zero_changes_no_bit) {
  auto x = random_values<float>(1003, 2);
  x[3] = -0.0F;
  expect_same_bits(dropped(bench(), x, {1, 2, 3}, 0.0F), x);
}

TEST_P(dropout_op, what_is_dropped_is_zero_though_it_be_no_number) {
  const auto y = dropped(bench(), floats(1000, std::nanf("")), {1, 2, 3}, 0.5F);
  std::size_t zeros = 0;
  for (const float one : y) {
    if (std::isnan(one)) continue;
    EXPECT_TRUE(same_bits(one, 0.0F));
    ++zeros;
  }
  EXPECT_GT(zeros, 400U);
}

TEST_P(dropout_op, the_backward_drops_what_the_forward_dropped_and_the_next_draws_others) {
  const draws_at at{9, 40, 2};
  const auto ones = dropped(bench(), floats(1000, 1.0F), at, 0.5F);
  const auto dy = random_values<float>(1000, 4);
  floats expected;
  for (std::size_t i = 0; i < dy.size(); ++i) expected.push_back(ones[i] == 0 ? 0.0F : 2 * dy[i]);
  expect_same_bits(dropped(bench(), dy, at, 0.5F), expected);
  const auto later = dropped(bench(), floats(1000, 1.0F), {9, 40, 2 + uniform_draws(1000)}, 0.5F);
  EXPECT_NE(later, ones);
  expect_same_bits(later, dropped(bench(), floats(1000, 1.0F), {9, 42 + 250, 0}, 0.5F));
}

TEST_P(dropout_op, each_element_has_the_bits_it_has_before_fewer) {
  const auto x = random_values<float>(64, 5);
  const auto whole = dropped(bench(), x, {1, 2, 3}, 0.5F);
  for (const std::size_t size : {1U, 3U, 4U, 5U, 63U}) {
    const auto end = static_cast<std::ptrdiff_t>(size);
    expect_same_bits(dropped(bench(), {x.begin(), x.begin() + end}, {1, 2, 3}, 0.5F),
                     {whole.begin(), whole.begin() + end});
  }
}

TEST_P(dropout_op, works_in_place) {
  const auto x = random_values<float>(5003, 6);
  const auto xs = bench().put(x);
  const auto base = bench().put(std::vector<std::uint64_t>{8, 9});
  launch(bench().on(), dropout, read<float>{xs.span()}, read<std::uint64_t>{base.span()},
         write<float>{xs.span()}, std::uint64_t{4}, 0.3F);
  expect_same_bits(bench().take(xs), dropped(bench(), x, {8, 9, 4}, 0.3F));
}

TEST_P(dropout_op, refuses_rates_that_are_none_and_sizes_that_do_not_fit) {
  const auto a = bench().put(floats(8));
  const auto words = bench().put(std::vector<std::uint64_t>(3));
  const auto run = [&](std::size_t base, std::size_t y, float rate) {
    launch(bench().on(), dropout, read<float>{a.span()},
           read<std::uint64_t>{words.span().subview(0, base)}, write<float>{a.span().subview(0, y)},
           std::uint64_t{0}, rate);
  };
  for (const float rate : {-0.1F, 1.0F, 1.5F, std::nanf("")}) {
    EXPECT_THROW(run(2, 8, rate), usage_error) << rate;
  }
  EXPECT_THROW(run(3, 8, 0.5F), usage_error);
  EXPECT_THROW(run(2, 7, 0.5F), usage_error);
  expect_same_bits(bench().take(a), floats(8));
}

TEST(dropout, the_cuts_between_threads_change_nothing) {
  const auto x = random_values<float>(20003, 7);
  const std::vector<std::uint64_t> base{11, 12};
  floats y(x.size());
  cpu_call call{{}, odd_pieces()};
  ops::dropout_cpu(call, read<float>{view{x.data(), x.size()}},
                   read<std::uint64_t>{view{base.data(), base.size()}},
                   write<float>{view{y.data(), y.size()}}, 5, 0.4F);
  op_bench bench{"cpu", 1};
  expect_same_bits(y, dropped(bench, x, {11, 12, 5}, 0.4F));
}

}  // namespace
}  // namespace reprise::test
