#include "reprise/ops/batch_norm.hpp"

#include "tests/ops/bench.hpp"
#include "tests/ops/reference.hpp"

namespace reprise::test {
namespace {

using floats = std::vector<float>;
using doubles = std::vector<double>;

constexpr float epsilon = 1e-5F;
constexpr float momentum = 0.3F;

struct norm_case {
  std::size_t width;
  floats x, gain, bias, running;

  norm_case(std::size_t rows, std::size_t wide, std::uint64_t seed = 1)
      : width{wide},
        x{random_values<float>(rows * wide, seed, 3.0F)},
        gain{random_values<float>(wide, seed + 1)},
        bias{random_values<float>(wide, seed + 2)},
        running{random_values<float>(2 * wide, seed + 3)} {
    for (std::size_t j = wide; j < 2 * wide; ++j) running[j] = std::abs(running[j]);
  }

  std::size_t rows() const { return x.size() / width; }
  // One column, as a case of its own.
  norm_case column(std::size_t j) const {
    norm_case one = *this;
    one.width = 1;
    one.x.clear();
    for (std::size_t row = 0; row < rows(); ++row) one.x.push_back(x[row * width + j]);
    one.gain = {gain[j]};
    one.bias = {bias[j]};
    one.running = {running[j], running[width + j]};
    return one;
  }
};

struct normed {
  floats y, stats, running;
};

normed trained(op_bench& bench, const norm_case& at, place where = place::aligned) {
  const auto x = bench.put(at.x, where);
  const auto gain = bench.put(at.gain, where);
  const auto bias = bench.put(at.bias, where);
  const auto running = bench.put(at.running, where);
  const auto y = bench.room<float>(at.x.size(), where);
  const auto stats = bench.room<float>(2 * at.width, where);
  const lending_stream on{bench.on()};
  launch(on, batch_norm, read<float>{x.span()}, read<float>{gain.span()}, read<float>{bias.span()},
         inout<float>{running.span()}, write<float>{y.span()}, write<float>{stats.span()},
         static_cast<std::int64_t>(at.width), epsilon, momentum);
  return {bench.take(y), bench.take(stats), bench.take(running)};
}

floats frozen(op_bench& bench, const norm_case& at, place where = place::aligned) {
  const auto x = bench.put(at.x, where);
  const auto gain = bench.put(at.gain, where);
  const auto bias = bench.put(at.bias, where);
  const auto running = bench.put(at.running, where);
  const auto y = bench.room<float>(at.x.size(), where);
  launch(bench.on(), frozen_batch_norm, read<float>{x.span()}, read<float>{gain.span()},
         read<float>{bias.span()}, read<float>{running.span()}, write<float>{y.span()},
         static_cast<std::int64_t>(at.width), epsilon);
  EXPECT_TRUE(bench.take(running) == at.running);
  return bench.take(y);
}

// By the formulas, in double.
struct in_double {
  doubles y, stats, running;

  explicit in_double(const norm_case& at)
      : y(at.x.size()), stats(2 * at.width), running(wide(at.running)) {
    const auto m = static_cast<double>(at.rows());
    const auto by = static_cast<double>(momentum);
    for (std::size_t j = 0; j < at.width; ++j) {
      const doubles column = wide(at.column(j).x);
      double mean = 0;
      double square = 0;
      for (const double one : column) mean += one / m;
      for (const double one : column) square += (one - mean) * (one - mean);
      const double inverse = 1 / std::sqrt(square / m + static_cast<double>(epsilon));
      for (std::size_t row = 0; row < at.rows(); ++row) {
        y[row * at.width + j] = (column[row] - mean) * inverse * static_cast<double>(at.gain[j]) +
                                static_cast<double>(at.bias[j]);
      }
      stats[j] = mean;
      stats[at.width + j] = inverse;
      running[j] += by * (mean - running[j]);
      running[at.width + j] += by * (square / (m - 1) - running[at.width + j]);
    }
  }
};

class batch_norm_op : public op_on_device {};
INSTANTIATE_TEST_SUITE_P(devices, batch_norm_op, testing::ValuesIn(plain_devices()), device_case);

TEST_P(batch_norm_op, agrees_with_its_formulas_in_double) {
  for (const std::size_t rows : {2U, 31U, 32U, 33U, 100U, 2000U}) {
    for (const std::size_t width : {1U, 31U, 33U, 70U}) {
      SCOPED_TRACE(std::to_string(rows) + " rows of " + std::to_string(width));
      const norm_case at{rows, width};
      const normed got = trained(bench(), at);
      const in_double want{at};
      expect_near(got.y, want.y, 1e-5);
      expect_near(got.stats, want.stats, 1e-6);
      expect_near(got.running, want.running, 1e-6);
    }
  }
}

// A mean is rounded to 0.002 there, and its square weighs. A sum of squares less the square of a
// sum would have no digit of the variance left.
TEST_P(batch_norm_op, cancels_nothing_where_the_mean_is_large) {
  norm_case at{500, 3};
  for (float& one : at.x) one += 30000.0F;
  const normed got = trained(bench(), at);
  const in_double want{at};
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_NEAR(static_cast<double>(got.running[i]), want.running[i],
                1e-4 * std::abs(want.running[i]));
  }
}

TEST_P(batch_norm_op, a_column_of_one_value_is_its_bias) {
  for (const std::size_t rows : {2U, 64U}) {
    norm_case at{rows, 5};
    at.x.assign(at.x.size(), 0.75F);
    const normed got = trained(bench(), at);
    for (std::size_t i = 0; i < got.y.size(); ++i) ASSERT_EQ(got.y[i], at.bias[i % 5]);
    for (std::size_t j = 0; j < 5; ++j) {
      EXPECT_EQ(got.running[5 + j], (1.0F - momentum) * at.running[5 + j]);
    }
  }
}

// Chunks of 32 rows in 8 slots, what they leave in 32: written out plainly, column by column.
TEST_P(batch_norm_op, adds_rows_in_the_order_that_is_documented) {
  for (const std::size_t rows : {2U, 31U, 33U, 100U, 512U, 2000U}) {
    SCOPED_TRACE(rows);
    const norm_case at{rows, 37, 7};
    const normed got = trained(bench(), at);
    const auto m = static_cast<float>(rows);
    for (std::size_t j = 0; j < at.width; ++j) {
      const floats column = at.column(j).x;
      floats sums;
      floats squares;
      floats counts;
      for (std::size_t first = 0; first < rows; first += 32) {
        const floats chunk(
            column.begin() + static_cast<std::ptrdiff_t>(first),
            column.begin() + static_cast<std::ptrdiff_t>(std::min(first + 32, rows)));
        counts.push_back(static_cast<float>(chunk.size()));
        sums.push_back(in_slots(chunk, 8));
        floats off;
        for (const float one : chunk) {
          const float from = one - sums.back() / counts.back();
          off.push_back(from * from);
        }
        squares.push_back(in_slots(off, 8));
      }
      const float mean = in_slots(sums, 32) / m;
      for (std::size_t c = 0; c < sums.size(); ++c) {
        const float from = sums[c] / counts[c] - mean;
        const float between = counts[c] * (from * from);
        squares[c] = squares[c] + between;
      }
      const float square = in_slots(squares, 32);
      const float inverse = 1.0F / std::sqrt(square / m + epsilon);
      ASSERT_EQ(got.stats[j], mean) << j;
      ASSERT_EQ(got.stats[at.width + j], inverse) << j;
      const float kept_mean = (1.0F - momentum) * at.running[j];
      const float new_mean = momentum * mean;
      ASSERT_EQ(got.running[j], kept_mean + new_mean) << j;
      const float kept = (1.0F - momentum) * at.running[at.width + j];
      const float by_batch = momentum * (square / (m - 1.0F));
      ASSERT_EQ(got.running[at.width + j], kept + by_batch) << j;
      for (const std::size_t row : {std::size_t{0}, rows - 1}) {
        const float scaled = (column[row] - mean) * inverse * at.gain[j];
        ASSERT_EQ(got.y[row * at.width + j], scaled + at.bias[j]) << j;
      }
    }
  }
}

TEST_P(batch_norm_op, a_column_has_the_bits_it_has_beside_others) {
  const norm_case all{100, 70, 8};
  const normed together = trained(bench(), all);
  const normed shifted = trained(bench(), all, place::shifted);
  expect_same_bits(shifted.y, together.y);
  expect_same_bits(shifted.stats, together.stats);
  expect_same_bits(shifted.running, together.running);
  for (const std::size_t j : {0U, 31U, 32U, 69U}) {
    const normed alone = trained(bench(), all.column(j));
    expect_same_bits(alone.stats, {together.stats[j], together.stats[70 + j]});
    expect_same_bits(alone.running, {together.running[j], together.running[70 + j]});
    for (std::size_t row = 0; row < 100; ++row) {
      ASSERT_EQ(alone.y[row], together.y[row * 70 + j]);
    }
  }
}

TEST_P(batch_norm_op, by_frozen_statistics_is_its_formula) {
  for (const std::size_t width : {1U, 32U, 70U}) {
    const norm_case at{45, width, 9};
    floats want;
    for (std::size_t i = 0; i < at.x.size(); ++i) {
      const std::size_t j = i % width;
      const float inverse = 1.0F / std::sqrt(at.running[width + j] + epsilon);
      const float scaled = (at.x[i] - at.running[j]) * inverse * at.gain[j];
      want.push_back(scaled + at.bias[j]);
    }
    expect_same_bits(frozen(bench(), at), want);
    expect_same_bits(frozen(bench(), at, place::shifted), want);
  }
}

TEST_P(batch_norm_op, by_frozen_statistics_a_row_has_the_bits_it_has_alone) {
  const norm_case all{40, 33, 10};
  const floats together = frozen(bench(), all);
  for (const std::size_t row : {0U, 31U, 32U, 39U}) {
    norm_case one = all;
    one.x = row_of(all.x, row, 33);
    expect_same_bits(frozen(bench(), one), row_of(together, row, 33));
  }
  norm_case none = all;
  none.x.clear();
  EXPECT_TRUE(frozen(bench(), none).empty());
}

TEST_P(batch_norm_op, the_output_may_overwrite_the_input) {
  const norm_case at{70, 40, 11};
  const floats expected = trained(bench(), at).y;
  const floats expected_frozen = frozen(bench(), at);
  const auto gain = bench().put(at.gain);
  const auto bias = bench().put(at.bias);
  const auto running = bench().put(at.running);
  const auto stats = bench().room<float>(80);
  const auto y = bench().put(at.x);
  launch(bench().on(), frozen_batch_norm, read<float>{y.span()}, read<float>{gain.span()},
         read<float>{bias.span()}, read<float>{running.span()}, write<float>{y.span()}, 40,
         epsilon);
  expect_same_bits(bench().take(y), expected_frozen);
  const auto again = bench().put(at.x);
  const lending_stream on{bench().on()};
  launch(on, batch_norm, read<float>{again.span()}, read<float>{gain.span()},
         read<float>{bias.span()}, inout<float>{running.span()}, write<float>{again.span()},
         write<float>{stats.span()}, 40, epsilon, momentum);
  expect_same_bits(bench().take(again), expected);
}

TEST_P(batch_norm_op, refuses_sizes_that_do_not_fit) {
  const auto a = bench().put(floats(16));
  const auto in = [&](std::size_t count) { return read<float>{a.span().subview(0, count)}; };
  const auto to = [&](std::size_t count) { return write<float>{a.span().subview(0, count)}; };
  const lending_stream on{bench().on()};
  const auto train = [&](std::size_t x, std::size_t gain, std::size_t bias, std::size_t running,
                         std::size_t y, std::size_t stats, std::int64_t width) {
    launch(on, batch_norm, in(x), in(gain), in(bias), inout<float>{a.span().subview(0, running)},
           to(y), to(stats), width, epsilon, momentum);
  };
  EXPECT_THROW(train(8, 4, 4, 8, 8, 8, 3), usage_error);
  EXPECT_THROW(train(8, 4, 4, 8, 8, 8, 0), usage_error);
  EXPECT_THROW(train(8, 3, 4, 8, 8, 8, 4), usage_error);
  EXPECT_THROW(train(8, 4, 3, 8, 8, 8, 4), usage_error);
  EXPECT_THROW(train(8, 4, 4, 7, 8, 8, 4), usage_error);
  EXPECT_THROW(train(8, 4, 4, 8, 7, 8, 4), usage_error);
  EXPECT_THROW(train(8, 4, 4, 8, 8, 7, 4), usage_error);
  const auto infer = [&](std::size_t x, std::size_t gain, std::size_t bias, std::size_t running,
                         std::size_t y, std::int64_t width) {
    launch(on, frozen_batch_norm, in(x), in(gain), in(bias), in(running), to(y), width, epsilon);
  };
  EXPECT_THROW(infer(8, 4, 4, 8, 8, 3), usage_error);
  EXPECT_THROW(infer(8, 3, 4, 8, 8, 4), usage_error);
  EXPECT_THROW(infer(8, 4, 3, 8, 8, 4), usage_error);
  EXPECT_THROW(infer(8, 4, 4, 7, 8, 4), usage_error);
  EXPECT_THROW(infer(8, 4, 4, 8, 7, 4), usage_error);
}

TEST_P(batch_norm_op, refuses_a_batch_that_has_no_variance) {
  for (const std::size_t rows : {0U, 1U}) {
    try {
      trained(bench(), norm_case{rows, 4});
      FAIL() << "taken";
    } catch (const usage_error& refused) {
      EXPECT_EQ(std::string{refused.what()},
                "batch_norm: x has " + std::to_string(rows) +
                    " rows, and a variance is of 2 at least; give more, or freeze the statistics");
    }
  }
}

TEST(batch_norm, of_more_columns_than_a_grid_of_blocks_covers_is_refused) {
  constexpr std::size_t most = 2'097'120;  // 65,535 blocks of 32
  const auto rows = [](std::size_t width) {
    return ops::batch_norm_rows(2 * width, width, width, 2 * width, 2 * width, 2 * width,
                                static_cast<std::int64_t>(width));
  };
  EXPECT_EQ(rows(most), 2);
  EXPECT_THROW(rows(most + 1), usage_error);
}

TEST(batch_norm, the_cuts_between_threads_change_nothing) {
  op_bench bench{"cpu", 1};
  const norm_case at{101, 250, 12};
  cpu_call call{{}, odd_pieces()};
  const auto in = [](const floats& from) { return read<float>{view{from.data(), from.size()}}; };
  const auto to = [](floats& all) { return write<float>{view{all.data(), all.size()}}; };
  normed got{floats(at.x.size()), floats(500), at.running};
  ops::batch_norm_cpu(call, in(at.x), in(at.gain), in(at.bias),
                      inout<float>{view{got.running.data(), got.running.size()}}, to(got.y),
                      to(got.stats), 250, epsilon, momentum);
  const normed expected = trained(bench, at);
  expect_same_bits(got.y, expected.y);
  expect_same_bits(got.stats, expected.stats);
  expect_same_bits(got.running, expected.running);
  floats y(at.x.size());
  ops::frozen_batch_norm_cpu(call, in(at.x), in(at.gain), in(at.bias), in(at.running), to(y), 250,
                             epsilon);
  expect_same_bits(y, frozen(bench, at));
}

TEST(batch_norm, cuda_gives_the_bits_of_the_cpu) {
  if (!gpu_or_skip()) GTEST_SKIP() << "no GPU answers";
  op_bench cpu{"cpu"};
  op_bench cuda{automatic_device()};
  for (const auto& [rows, width] : {std::pair{2U, 1000U}, {512U, 256U}, {8192U, 33U}}) {
    const norm_case at{rows, width, 13};
    const normed got = trained(cuda, at);
    const normed expected = trained(cpu, at);
    expect_same_bits(got.y, expected.y);
    expect_same_bits(got.stats, expected.stats);
    expect_same_bits(got.running, expected.running);
    expect_same_bits(frozen(cuda, at), frozen(cpu, at));
  }
}

}  // namespace
}  // namespace reprise::test
