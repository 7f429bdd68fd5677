#include "reprise/ops/layer_norm.hpp"

#include "tests/ops/bench.hpp"

namespace reprise::test {
namespace {

constexpr float epsilon = 1e-5F;

std::vector<float> normed(op_bench& bench, const std::vector<float>& x,
                          const std::vector<float>& gain, const std::vector<float>& bias,
                          place where = place::aligned) {
  const auto xs = bench.put(x, where);
  const auto gains = bench.put(gain, where);
  const auto biases = bench.put(bias, where);
  const auto to = bench.room<float>(x.size(), where);
  launch(bench.on(), layer_norm, read<float>{xs.span()}, read<float>{gains.span()},
         read<float>{biases.span()}, write<float>{to.span()},
         static_cast<std::int64_t>(gain.size()), epsilon);
  return bench.take(to);
}

struct kept_norm {
  std::vector<float> y;
  std::vector<float> stats;
};

kept_norm normed_and_kept(op_bench& bench, const std::vector<float>& x,
                          const std::vector<float>& gain, const std::vector<float>& bias) {
  const auto xs = bench.put(x);
  const auto gains = bench.put(gain);
  const auto biases = bench.put(bias);
  const auto to = bench.room<float>(x.size());
  const auto stats = bench.room<float>(2 * x.size() / gain.size());
  launch(bench.on(), layer_norm_saving, read<float>{xs.span()}, read<float>{gains.span()},
         read<float>{biases.span()}, write<float>{to.span()}, write<float>{stats.span()},
         static_cast<std::int64_t>(gain.size()), epsilon);
  return {bench.take(to), bench.take(stats)};
}

std::vector<double> reference(const std::vector<float>& x, const std::vector<float>& gain,
                              const std::vector<float>& bias) {
  const std::size_t width = gain.size();
  std::vector<double> out;
  for (std::size_t row = 0; row < x.size() / width; ++row) {
    const std::vector<float> values = row_of(x, row, width);
    double mean = 0;
    for (const float value : values) mean += static_cast<double>(value);
    mean /= static_cast<double>(width);
    double variance = 0;
    for (const float value : values) {
      variance += (static_cast<double>(value) - mean) * (static_cast<double>(value) - mean);
    }
    variance /= static_cast<double>(width);
    for (std::size_t j = 0; j < width; ++j) {
      const double unit = (static_cast<double>(values[j]) - mean) / std::sqrt(variance + 1e-5);
      out.push_back(unit * static_cast<double>(gain[j]) + static_cast<double>(bias[j]));
    }
  }
  return out;
}

const std::vector<std::size_t> widths{1, 2, 31, 32, 33, 100, 256, 1000, 4096};

class layer_norm_op : public op_on_device {};
INSTANTIATE_TEST_SUITE_P(devices, layer_norm_op, testing::ValuesIn(plain_devices()), device_case);

TEST_P(layer_norm_op, agrees_with_a_double_reference_at_every_width) {
  for (const std::size_t width : widths) {
    SCOPED_TRACE(width);
    const auto x = random_values<float>(5 * width, 1);
    const auto gain = random_values<float>(width, 2);
    const auto bias = random_values<float>(width, 3);
    const auto got = normed(bench(), x, gain, bias);
    expect_near(got, reference(x, gain, bias), 1e-5);
    expect_same_bits(normed(bench(), x, gain, bias, place::shifted), got);
  }
}

TEST_P(layer_norm_op, a_row_has_the_bits_it_has_alone) {
  for (const std::size_t width : {7U, 256U}) {
    const auto x = random_values<float>(64 * width, 4);
    const auto gain = random_values<float>(width, 5);
    const auto bias = random_values<float>(width, 6);
    const auto together = normed(bench(), x, gain, bias);
    for (std::size_t row = 0; row < 64; ++row) {
      expect_same_bits(normed(bench(), row_of(x, row, width), gain, bias),
                       row_of(together, row, width));
      expect_same_bits(normed(bench(), rows_from(x, row, width), gain, bias),
                       rows_from(together, row, width));
    }
  }
}

TEST_P(layer_norm_op, saving_gives_the_same_bits_and_keeps_mean_and_inverse_deviation) {
  for (const std::size_t width : widths) {
    SCOPED_TRACE(width);
    const auto x = random_values<float>(9 * width, 16, 3.0F);
    const auto gain = random_values<float>(width, 17);
    const auto bias = random_values<float>(width, 18);
    const kept_norm kept = normed_and_kept(bench(), x, gain, bias);
    expect_same_bits(kept.y, normed(bench(), x, gain, bias));
    // What a gain of 1 and a bias of 0 leave is the row in these units.
    const auto units =
        normed(bench(), x, std::vector<float>(width, 1.0F), std::vector<float>(width, 0.0F));
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t row = i / width;
      ASSERT_EQ((x[i] - kept.stats[2 * row]) * kept.stats[2 * row + 1], units[i]) << i;
    }
    for (std::size_t row = 0; row < 9; ++row) {
      double mean = 0;
      for (const float value : row_of(x, row, width)) mean += static_cast<double>(value);
      EXPECT_NEAR(static_cast<double>(kept.stats[2 * row]), mean / static_cast<double>(width),
                  1e-5);
      expect_same_bits(normed_and_kept(bench(), row_of(x, row, width), gain, bias).stats,
                       row_of(kept.stats, row, 2));
    }
  }
  EXPECT_TRUE(normed_and_kept(bench(), {}, {1, 2}, {3, 4}).stats.empty());
}

TEST_P(layer_norm_op, saving_works_in_place_and_refuses_stats_of_another_size) {
  const auto x = random_values<float>(3 * 100, 19);
  const auto gain = random_values<float>(100, 20);
  const auto bias = random_values<float>(100, 21);
  const auto xs = bench().put(x);
  const auto gains = bench().put(gain);
  const auto biases = bench().put(bias);
  const auto stats = bench().room<float>(8);
  const auto run = [&](std::size_t kept) {
    launch(bench().on(), layer_norm_saving, read<float>{xs.span()}, read<float>{gains.span()},
           read<float>{biases.span()}, write<float>{xs.span()},
           write<float>{stats.span().subview(0, kept)}, 100, epsilon);
  };
  EXPECT_THROW(run(3), usage_error);
  EXPECT_THROW(run(8), usage_error);
  run(6);
  expect_same_bits(bench().take(xs), normed(bench(), x, gain, bias));
}

TEST_P(layer_norm_op, works_in_place) {
  const auto x = random_values<float>(3 * 256, 7);
  const auto gain = random_values<float>(256, 8);
  const auto bias = random_values<float>(256, 9);
  const auto xs = bench().put(x);
  const auto gains = bench().put(gain);
  const auto biases = bench().put(bias);
  launch(bench().on(), layer_norm, read<float>{xs.span()}, read<float>{gains.span()},
         read<float>{biases.span()}, write<float>{xs.span()}, 256, epsilon);
  expect_same_bits(bench().take(xs), normed(bench(), x, gain, bias));
}

TEST_P(layer_norm_op, a_row_of_one_value_is_its_bias) {
  const std::vector<float> bias{0.5F, -2.0F, 3.0F};
  expect_same_bits(normed(bench(), {4, 4, 4}, {1, 2, 3}, bias), bias);
}

TEST_P(layer_norm_op, takes_no_rows_at_all) {
  EXPECT_TRUE(normed(bench(), {}, {1, 2}, {3, 4}).empty());
}

TEST_P(layer_norm_op, refuses_sizes_that_do_not_fit) {
  const auto a = bench().put(std::vector<float>(16));
  const auto run = [&](std::size_t x, std::size_t gain, std::size_t bias, std::size_t y,
                       std::int64_t width) {
    launch(bench().on(), layer_norm, read<float>{a.span().subview(0, x)},
           read<float>{a.span().subview(0, gain)}, read<float>{a.span().subview(0, bias)},
           write<float>{a.span().subview(0, y)}, width, epsilon);
  };
  EXPECT_THROW(run(8, 4, 4, 8, 3), usage_error);
  EXPECT_THROW(run(8, 3, 4, 8, 4), usage_error);
  EXPECT_THROW(run(8, 4, 3, 8, 4), usage_error);
  EXPECT_THROW(run(8, 4, 4, 4, 4), usage_error);
  EXPECT_THROW(run(8, 4, 4, 8, 0), usage_error);
}

TEST(layer_norm, the_cuts_between_threads_change_nothing) {
  const auto x = random_values<float>(101 * 256, 10);
  const auto gain = random_values<float>(256, 11);
  const auto bias = random_values<float>(256, 12);
  std::vector<float> out(x.size());
  cpu_call call{{}, odd_pieces()};
  ops::layer_norm_cpu(call, read<float>{view{x.data(), x.size()}},
                      read<float>{view{gain.data(), gain.size()}},
                      read<float>{view{bias.data(), bias.size()}},
                      write<float>{view{out.data(), out.size()}}, 256, epsilon);
  op_bench bench{"cpu", 1};
  expect_same_bits(out, normed(bench, x, gain, bias));
}

TEST(layer_norm, cuda_gives_the_bits_of_the_cpu) {
  if (!gpu_or_skip()) GTEST_SKIP() << "no GPU answers";
  op_bench cpu{"cpu"};
  op_bench cuda{automatic_device()};
  for (const std::size_t width : widths) {
    for (const float scale : {1e-6F, 1.0F, 1e4F}) {
      const auto x = random_values<float>(67 * width, 13, scale);
      const auto gain = random_values<float>(width, 14);
      const auto bias = random_values<float>(width, 15);
      expect_same_bits(normed(cuda, x, gain, bias), normed(cpu, x, gain, bias));
      expect_same_bits(normed_and_kept(cuda, x, gain, bias).stats,
                       normed_and_kept(cpu, x, gain, bias).stats);
    }
  }
}

}  // namespace
}  // namespace reprise::test
