#include "reprise/ops/random_uniform.hpp"

#include <cmath>

#include "tests/ops/bench.hpp"

namespace reprise::test {
namespace {

std::vector<float> drawn(op_bench& bench, std::size_t size, std::uint64_t seed,
                         std::uint64_t counter, std::uint64_t offset) {
  const auto base = bench.put(std::vector<std::uint64_t>{seed, counter});
  const auto to = bench.room<float>(size, place::aligned);
  launch(bench.on(), random_uniform, read<std::uint64_t>{base.span()}, write<float>{to.span()},
         offset);
  return bench.take(to);
}

class random_uniform_op : public op_on_device {};
INSTANTIATE_TEST_SUITE_P(devices, random_uniform_op, testing::ValuesIn(plain_devices()),
                         device_case);

TEST_P(random_uniform_op, draws_are_spread_evenly_over_0_to_1) {
  const auto values = drawn(bench(), 1 << 20, 3, 0, 0);
  std::vector<int> tenths(10, 0);
  for (const float value : values) {
    ASSERT_GE(value, 0.0F);
    ASSERT_LT(value, 1.0F);
    ++tenths[static_cast<std::size_t>(value * 10)];
  }
  for (const int count : tenths) EXPECT_NEAR(count, (1 << 20) / 10.0, 2000);  // deviation 307
}

TEST_P(random_uniform_op, each_element_is_a_word_of_its_philox_block) {
  const auto values = drawn(bench(), 1003, 0x1234567890, 100, 7);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const ops::philox_words words = ops::philox(0x1234567890, 107 + i / 4, 0);
    ASSERT_EQ(values[i], static_cast<float>(words.at[i % 4] >> 8) / 16777216.0F) << i;
  }
}

TEST_P(random_uniform_op, a_later_offset_goes_on_where_the_first_draws_end) {
  const auto whole = drawn(bench(), 400, 5, 20, 0);
  const auto rest = drawn(bench(), 200, 5, 20, uniform_draws(200));
  expect_same_bits(rest, {whole.begin() + 200, whole.end()});
  expect_same_bits(drawn(bench(), 200, 5, 70, 0), rest);
}

TEST_P(random_uniform_op, any_size_is_filled_and_no_more) {
  const auto whole = drawn(bench(), 64, 1, 2, 3);
  for (const std::size_t size : {0, 1, 3, 4, 5, 63}) {
    expect_same_bits(drawn(bench(), size, 1, 2, 3),
                     {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)});
  }
}

TEST(random_uniform, refuses_a_base_that_is_not_two_words) {
  op_bench bench{"cpu"};
  const auto base = bench.put(std::vector<std::uint64_t>{1, 2, 3});
  const auto to = bench.room<float>(4, place::aligned);
  EXPECT_THROW(launch(bench.on(), random_uniform, read<std::uint64_t>{base.span()},
                      write<float>{to.span()}, std::uint64_t{0}),
               usage_error);
}

}  // namespace
}  // namespace reprise::test
