#include "reprise/ops/random.hpp"

#include "reprise/ops/philox.hpp"
#include "tests/ops/bench.hpp"

namespace reprise::test {
namespace {

template <class T>
std::vector<T> drawn(op_bench& bench, std::size_t size, std::uint64_t seed, std::uint64_t stream,
                     float scale, place where = place::aligned) {
  const auto to = bench.template room<T>(size, where);
  launch(bench.on(), random_normal<T>, write<T>{to.span()}, seed, stream, scale);
  return bench.take(to);
}

template <class F>
void each_element(F&& check) {
  check(types<float, float>{});
  check(types<bf16, bf16>{});
}

class random_op : public op_on_device {};
INSTANTIATE_TEST_SUITE_P(devices, random_op, testing::ValuesIn(plain_devices()), device_case);

TEST_P(random_op, draws_have_the_moments_of_a_normal_distribution) {
  const std::size_t count = 1 << 20;
  const auto values = drawn<float>(bench(), count, 7, 3, 0.5f);
  double moments[5] = {};
  for (const float value : values) {
    for (int power = 1; power <= 4; ++power) {
      moments[power] += std::pow(value / 0.5, power) / static_cast<double>(count);
    }
    ASSERT_LT(std::abs(value), 3.47f * 0.5f);
  }
  EXPECT_NEAR(moments[1], 0, 0.005);
  EXPECT_NEAR(moments[2], 1, 0.005);
  EXPECT_NEAR(moments[3], 0, 0.02);
  EXPECT_NEAR(moments[4], 2.7, 0.03);  // of four uniforms; a normal distribution's is 3
}

TEST_P(random_op, a_draw_is_a_function_of_seed_stream_and_index) {
  each_element([&]<class T>(types<T, T>) {
    const auto whole = drawn<T>(bench(), 5001, 11, 12, 0.02f);
    for (const std::size_t size : {0, 1, 2, 7, 8, 9, 2048, 5000}) {
      const auto part = drawn<T>(bench(), size, 11, 12, 0.02f);
      expect_same_bits(part, {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)});
    }
    expect_same_bits(drawn<T>(bench(), 5001, 11, 12, 0.02f, place::shifted), whole);
  });
}

TEST_P(random_op, the_first_draws_are_those_of_the_formula) {
  const auto values = drawn<float>(bench(), 2, 0, 0, ops::centred_sum_deviation);
  // Of the published words 6627e8d5 e169c58d bc57ac4c 9b00dbd8.
  EXPECT_EQ(values[0], static_cast<float>(0x6627 + 0xe8d5 + 0xe169 + 0xc58d - 131070));
  EXPECT_EQ(values[1], static_cast<float>(0xbc57 + 0xac4c + 0x9b00 + 0xdbd8 - 131070));
}

TEST_P(random_op, each_element_is_half_of_its_philox_block) {
  const std::uint64_t seed = 0x123456789abcdef0;
  const std::uint64_t stream = 0xfedcba9876543210;
  const auto values = drawn<float>(bench(), 1001, seed, stream, ops::centred_sum_deviation);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const ops::philox_words words = ops::philox(seed, i / 2, stream);
    EXPECT_EQ(values[i], ops::centred_sum(words.at[i % 2 * 2], words.at[i % 2 * 2 + 1])) << i;
  }
}

TEST_P(random_op, other_seeds_and_streams_draw_other_numbers) {
  const auto values = drawn<float>(bench(), 1000, 1, 1, 1.0f);
  for (const auto& other :
       {drawn<float>(bench(), 1000, 2, 1, 1.0f), drawn<float>(bench(), 1000, 1, 2, 1.0f),
        drawn<float>(bench(), 1000, std::uint64_t{1} << 32 | 1, 1, 1.0f),
        drawn<float>(bench(), 1000, 1, std::uint64_t{1} << 32 | 1, 1.0f)}) {
    double product = 0;
    for (std::size_t i = 0; i < values.size(); ++i) product += values[i] * other[i];
    EXPECT_LT(std::abs(product), 150) << "correlated";  // deviation 32
  }
}

TEST(random, the_cuts_between_threads_change_nothing) {
  std::vector<bf16> out(10001);
  cpu_call call{{}, odd_pieces()};
  ops::random_normal_cpu(call, write<bf16>{view{out.data(), out.size()}}, 5, 6, 1.0f);
  op_bench bench{"cpu", 1};
  expect_same_bits(out, drawn<bf16>(bench, out.size(), 5, 6, 1.0f));
}

TEST(random, cuda_gives_the_bits_of_the_cpu) {
  if (!gpu_or_skip()) GTEST_SKIP() << "no GPU answers";
  op_bench cpu{"cpu"};
  op_bench cuda{automatic_device()};
  each_element([&]<class T>(types<T, T>) {
    for (const std::size_t size : {1, 9, 1000, 1 << 20}) {
      expect_same_bits(drawn<T>(cuda, size, 21, 22, 0.02f), drawn<T>(cpu, size, 21, 22, 0.02f));
    }
  });
}

}  // namespace
}  // namespace reprise::test
