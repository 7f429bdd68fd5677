#include "reprise/ops/rope.hpp"

#include "tests/ops/bench.hpp"

namespace reprise::test {
namespace {

struct shape {
  std::size_t rows, heads, head_dim;
};
const std::vector<shape> shapes = {{0, 2, 8},    {1, 1, 2},    {3, 2, 6},   {5, 14, 64},
                                   {2, 32, 128}, {4, 17, 256}, {1, 3, 258}, {2, 40, 80},
                                   {300, 2, 32}, {3, 1, 1024}};

std::vector<std::int32_t> random_positions(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 draw{seed};
  std::vector<std::int32_t> positions(count);
  for (std::int32_t& position : positions) position = static_cast<std::int32_t>(draw() % 100000);
  return positions;
}

template <class A>
std::vector<A> turned(op_bench& bench, const std::vector<A>& x,
                      const std::vector<std::int32_t>& positions, std::size_t heads,
                      std::size_t head_dim, place where = place::aligned) {
  const auto dim = static_cast<std::int64_t>(head_dim);
  const auto at = bench.put(x, where);
  const auto where_in_text = bench.put(positions);
  const auto frequencies = bench.put(rope_inverse_frequencies(dim, 10000.0));
  launch(bench.on(), rope<A>, inout<A>{at.span()}, read<std::int32_t>{where_in_text.span()},
         read<float>{frequencies.span()}, static_cast<std::int64_t>(heads), dim);
  return bench.take(at);
}

template <class A>
std::vector<double> reference(const std::vector<A>& x, const std::vector<std::int32_t>& positions,
                              std::size_t heads, std::size_t head_dim) {
  const auto frequencies = rope_inverse_frequencies(static_cast<std::int64_t>(head_dim), 10000.0);
  const std::size_t half = head_dim / 2;
  std::vector<double> y(x.size());
  for (std::size_t head = 0; head < positions.size() * heads; ++head) {
    for (std::size_t i = 0; i < half; ++i) {
      const float angle = static_cast<float>(positions[head / heads]) * frequencies[i];
      const double u = widen(x[head * head_dim + i]);
      const double v = widen(x[head * head_dim + half + i]);
      y[head * head_dim + i] = u * std::cos(double{angle}) - v * std::sin(double{angle});
      y[head * head_dim + half + i] = v * std::cos(double{angle}) + u * std::sin(double{angle});
    }
  }
  return y;
}

template <class F>
void each_activation(F&& check) {
  check(types<float, float>{});
  check(types<bf16, bf16>{});
}

class rope_op : public op_on_device {};
INSTANTIATE_TEST_SUITE_P(devices, rope_op, testing::ValuesIn(plain_devices()), device_case);

TEST_P(rope_op, agrees_with_a_double_reference_at_every_shape) {
  each_activation([&]<class A>(types<A, A>) {
    for (const shape& s : shapes) {
      SCOPED_TRACE(testing::Message() << s.rows << " rows, " << s.heads << " x " << s.head_dim);
      const auto x = random_values<A>(s.rows * s.heads * s.head_dim, 1);
      const auto positions = random_positions(s.rows, 2);
      const auto got = turned(bench(), x, positions, s.heads, s.head_dim);
      expect_near(got, reference(x, positions, s.heads, s.head_dim), 1e-6);
      expect_same_bits(turned(bench(), x, positions, s.heads, s.head_dim, place::shifted), got);
    }
  });
}

TEST_P(rope_op, each_row_has_the_bits_it_has_alone) {
  each_activation([&]<class A>(types<A, A>) {
    const std::size_t heads = 3;
    const std::size_t head_dim = 48;
    const std::size_t width = heads * head_dim;
    const auto x = random_values<A>(64 * width, 3);
    const auto positions = random_positions(64, 4);
    std::vector<A> alone;
    for (std::size_t row = 0; row < 64; ++row) {
      append(alone, turned(bench(), row_of(x, row, width), {positions[row]}, heads, head_dim));
    }
    for (std::size_t m = 1; m <= 64; ++m) {
      expect_same_bits(turned(bench(), rows_from(x, 64 - m, width), rows_from(positions, 64 - m, 1),
                              heads, head_dim),
                       rows_from(alone, 64 - m, width));
    }
  });
}

TEST_P(rope_op, position_zero_turns_nothing) {
  const auto x = random_values<float>(2 * 4 * 16, 5);
  expect_same_bits(turned(bench(), x, {0, 0}, 4, 16), x);
}

TEST_P(rope_op, refuses_sizes_that_do_not_fit) {
  const auto x = bench().put(std::vector<float>(24));
  const auto positions = bench().put(std::vector<std::int32_t>(3));
  const auto frequencies = bench().put(std::vector<float>(4));
  const auto run = [&](std::size_t rows, std::size_t pairs, std::int64_t heads, std::int64_t dim) {
    launch(bench().on(), rope<float>, inout<float>{x.span()},
           read<std::int32_t>{positions.span().subview(0, rows)},
           read<float>{frequencies.span().subview(0, pairs)}, heads, dim);
  };
  EXPECT_NO_THROW(run(3, 2, 2, 4));
  EXPECT_THROW(run(2, 2, 2, 4), usage_error);
  EXPECT_THROW(run(3, 3, 2, 4), usage_error);
  EXPECT_THROW(run(3, 2, 0, 4), usage_error);
  EXPECT_THROW(run(1, 1, 8, 3), usage_error);
}

TEST(rope, inverse_frequencies_are_the_powers_of_theta) {
  const auto frequencies = rope_inverse_frequencies(64, 500000.0);
  ASSERT_EQ(frequencies.size(), 32u);
  EXPECT_EQ(frequencies[0], 1.0f);
  for (std::size_t i = 0; i < 32; ++i) {
    EXPECT_FLOAT_EQ(frequencies[i],
                    static_cast<float>(std::pow(500000.0, -static_cast<double>(i) / 32)));
  }
}

TEST(rope, the_cuts_between_threads_change_nothing) {
  const std::size_t heads = 40;
  const std::size_t head_dim = 512;
  const auto x = random_values<float>(30 * heads * head_dim, 6);
  const auto positions = random_positions(30, 7);
  const auto frequencies = rope_inverse_frequencies(512, 10000.0);
  auto got = x;
  cpu_call call{{}, odd_pieces()};
  ops::rope_cpu(call, inout<float>{view{got.data(), got.size()}},
                read<std::int32_t>{view{positions.data(), positions.size()}},
                read<float>{view{frequencies.data(), frequencies.size()}},
                static_cast<std::int64_t>(heads), static_cast<std::int64_t>(head_dim));
  op_bench bench{"cpu", 1};
  expect_same_bits(got, turned(bench, x, positions, heads, head_dim));
}

TEST(rope, cuda_gives_the_bits_of_the_cpu) {
  if (!gpu_or_skip()) GTEST_SKIP() << "no GPU answers";
  op_bench cpu{"cpu"};
  op_bench cuda{automatic_device()};
  each_activation([&]<class A>(types<A, A>) {
    for (const shape& s : shapes) {
      SCOPED_TRACE(testing::Message() << s.rows << " rows, " << s.heads << " x " << s.head_dim);
      const auto x = random_values<A>(s.rows * s.heads * s.head_dim, 8);
      const auto positions = random_positions(s.rows, 9);
      expect_same_bits(turned(cuda, x, positions, s.heads, s.head_dim),
                       turned(cpu, x, positions, s.heads, s.head_dim));
    }
  });
}

}  // namespace
}  // namespace reprise::test
