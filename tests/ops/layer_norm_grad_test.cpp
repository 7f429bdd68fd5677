#include "reprise/ops/layer_norm_grad.hpp"

#include "reprise/ops/layer_norm.hpp"
#include "tests/ops/bench.hpp"
#include "tests/ops/reference.hpp"

namespace reprise::test {
namespace {

using floats = std::vector<float>;
using doubles = std::vector<double>;

constexpr float epsilon = 1e-5F;

// What a backward is given: rows, the weights, and the gradient of what the forward wrote.
struct norm_case {
  std::size_t width;
  floats x, gain, bias, dy, stats;

  norm_case(op_bench& bench, std::size_t rows, std::size_t wide, std::uint64_t seed = 1)
      : width{wide},
        x{random_values<float>(rows * wide, seed, 3.0F)},
        gain{random_values<float>(wide, seed + 1)},
        bias{random_values<float>(wide, seed + 2)},
        dy{random_values<float>(rows * wide, seed + 3)} {
    save_stats(bench);
  }

  std::size_t rows() const { return x.size() / width; }

  void save_stats(op_bench& bench) {
    const auto xs = bench.put(x);
    const auto gains = bench.put(gain);
    const auto biases = bench.put(bias);
    const auto y = bench.room<float>(x.size());
    const auto to = bench.room<float>(2 * rows());
    launch(bench.on(), layer_norm_saving, read<float>{xs.span()}, read<float>{gains.span()},
           read<float>{biases.span()}, write<float>{y.span()}, write<float>{to.span()},
           static_cast<std::int64_t>(width), epsilon);
    stats = bench.take(to);
  }
};

floats input_grad(op_bench& bench, const norm_case& at, place where = place::aligned) {
  const auto x = bench.put(at.x, where);
  const auto gain = bench.put(at.gain, where);
  const auto stats = bench.put(at.stats, where);
  const auto dy = bench.put(at.dy, where);
  const auto dx = bench.room<float>(at.x.size(), where);
  launch(bench.on(), layer_norm_input_grad, read<float>{x.span()}, read<float>{gain.span()},
         read<float>{stats.span()}, read<float>{dy.span()}, write<float>{dx.span()},
         static_cast<std::int64_t>(at.width));
  return bench.take(dx);
}

struct weight_grads {
  floats gain, bias;
};
struct rules {
  gradient_rule gain, bias;
};

std::vector<std::int32_t> word(gradient_rule rule) {
  return {static_cast<std::int32_t>(rule)};
}

weight_grads weight_grad(op_bench& bench, const norm_case& at, const rules& by,
                         const weight_grads& before, place where = place::aligned) {
  const auto x = bench.put(at.x, where);
  const auto stats = bench.put(at.stats, where);
  const auto dy = bench.put(at.dy, where);
  const auto dgain = bench.put(before.gain, where);
  const auto dbias = bench.put(before.bias, where);
  const auto gain_rule = bench.put(word(by.gain));
  const auto bias_rule = bench.put(word(by.bias));
  const lending_stream on{bench.on()};
  launch(on, layer_norm_weight_grad, read<float>{x.span()}, read<float>{stats.span()},
         read<float>{dy.span()}, inout<float>{dgain.span()}, inout<float>{dbias.span()},
         read<std::int32_t>{gain_rule.span()}, read<std::int32_t>{bias_rule.span()},
         static_cast<std::int64_t>(at.width));
  return {bench.take(dgain), bench.take(dbias)};
}

weight_grads written(op_bench& bench, const norm_case& at, place where = place::aligned) {
  const floats nothing(at.width, std::nanf(""));
  return weight_grad(bench, at, {gradient_rule::write, gradient_rule::write}, {nothing, nothing},
                     where);
}

// sum of dy * y over all rows, for doubles in place of x, of gain and of bias.
double weighed(const norm_case& at, const doubles& x, const doubles& gain, const doubles& bias) {
  double sum = 0;
  const auto width = static_cast<double>(at.width);
  for (std::size_t row = 0; row < at.rows(); ++row) {
    const auto from = x.begin() + static_cast<std::ptrdiff_t>(row * at.width);
    const auto last = from + static_cast<std::ptrdiff_t>(at.width);
    double mean = 0;
    double variance = 0;
    for (auto one = from; one != last; ++one) mean += *one / width;
    for (auto one = from; one != last; ++one) variance += (*one - mean) * (*one - mean) / width;
    const double inverse = 1 / std::sqrt(variance + static_cast<double>(epsilon));
    for (std::size_t j = 0; j < at.width; ++j) {
      const double y = (from[static_cast<std::ptrdiff_t>(j)] - mean) * inverse * gain[j] + bias[j];
      sum += static_cast<double>(at.dy[row * at.width + j]) * y;
    }
  }
  return sum;
}

class layer_norm_grad_op : public op_on_device {};
INSTANTIATE_TEST_SUITE_P(devices, layer_norm_grad_op, testing::ValuesIn(plain_devices()),
                         device_case);

TEST_P(layer_norm_grad_op, agree_with_central_differences) {
  for (const std::size_t width : {5U, 31U, 32U, 33U, 70U}) {
    SCOPED_TRACE(width);
    const norm_case at{bench(), 5, width};
    const doubles x = wide(at.x);
    const doubles gain = wide(at.gain);
    const doubles bias = wide(at.bias);
    expect_near(
        input_grad(bench(), at),
        central_differences([&](const doubles& v) { return weighed(at, v, gain, bias); }, x, 1e-4),
        3e-5);
    const weight_grads got = written(bench(), at);
    expect_near(
        got.gain,
        central_differences([&](const doubles& v) { return weighed(at, x, v, bias); }, gain), 1e-5);
    expect_near(
        got.bias,
        central_differences([&](const doubles& v) { return weighed(at, x, gain, v); }, bias), 1e-5);
  }
}

TEST_P(layer_norm_grad_op, a_row_of_one_moves_its_bias_alone) {
  const norm_case at{bench(), 3, 1};
  for (const float one : input_grad(bench(), at)) EXPECT_EQ(one, 0.0F);
  const weight_grads got = written(bench(), at);
  EXPECT_EQ(got.gain[0], 0.0F);
  EXPECT_EQ(got.bias[0], in_slots(at.dy, 8));
}

TEST_P(layer_norm_grad_op, an_input_gradient_has_the_bits_it_has_alone) {
  for (const std::size_t width : {7U, 256U}) {
    const norm_case all{bench(), 40, width, 5};
    const floats together = input_grad(bench(), all);
    expect_same_bits(input_grad(bench(), all, place::shifted), together);
    for (const std::size_t row : {0U, 1U, 17U, 39U}) {
      norm_case one = all;
      one.x = row_of(all.x, row, width);
      one.dy = row_of(all.dy, row, width);
      one.stats = row_of(all.stats, row, 2);
      expect_same_bits(input_grad(bench(), one), row_of(together, row, width));
    }
  }
}

TEST_P(layer_norm_grad_op, the_input_gradient_may_overwrite_either) {
  const norm_case at{bench(), 6, 100, 6};
  const floats expected = input_grad(bench(), at);
  for (const bool over_dy : {true, false}) {
    const auto x = bench().put(at.x);
    const auto gain = bench().put(at.gain);
    const auto stats = bench().put(at.stats);
    const auto dy = bench().put(at.dy);
    const auto& to = over_dy ? dy : x;
    launch(bench().on(), layer_norm_input_grad, read<float>{x.span()}, read<float>{gain.span()},
           read<float>{stats.span()}, read<float>{dy.span()}, write<float>{to.span()}, 100);
    expect_same_bits(bench().take(to), expected);
  }
}

// Chunks of 32 rows in 8 slots, their sums in 32: whole chunks and parts of one, one and many.
TEST_P(layer_norm_grad_op, weight_gradients_add_rows_in_the_order_that_is_documented) {
  for (const std::size_t rows : {1U, 31U, 32U, 33U, 100U, 512U, 2000U}) {
    SCOPED_TRACE(rows);
    const norm_case at{bench(), rows, 37, 7};
    const weight_grads got = written(bench(), at);
    for (std::size_t j = 0; j < at.width; ++j) {
      floats gains;
      floats biases;
      for (std::size_t first = 0; first < rows; first += 32) {
        floats of_gain;
        floats of_bias;
        for (std::size_t row = first; row < std::min(first + 32, rows); ++row) {
          const float g = at.dy[row * at.width + j];
          const float off = at.x[row * at.width + j] - at.stats[2 * row];
          of_gain.push_back(g * (off * at.stats[2 * row + 1]));
          of_bias.push_back(g);
        }
        gains.push_back(in_slots(of_gain, 8));
        biases.push_back(in_slots(of_bias, 8));
      }
      ASSERT_EQ(got.gain[j], in_slots(gains, 32)) << j;
      ASSERT_EQ(got.bias[j], in_slots(biases, 32)) << j;
    }
  }
}

TEST_P(layer_norm_grad_op, a_column_has_the_bits_it_has_beside_others) {
  const norm_case all{bench(), 100, 70, 8};
  const weight_grads together = written(bench(), all);
  const weight_grads shifted = written(bench(), all, place::shifted);
  expect_same_bits(shifted.gain, together.gain);
  expect_same_bits(shifted.bias, together.bias);
  for (const std::size_t j : {0U, 31U, 32U, 69U}) {
    norm_case one = all;
    one.width = 1;
    one.x.clear();
    one.dy.clear();
    for (std::size_t row = 0; row < 100; ++row) {
      one.x.push_back(all.x[row * 70 + j]);
      one.dy.push_back(all.dy[row * 70 + j]);
    }
    const weight_grads alone = written(bench(), one);
    expect_same_bits(alone.gain, {together.gain[j]});
    expect_same_bits(alone.bias, {together.bias[j]});
  }
}

TEST_P(layer_norm_grad_op, each_gradient_follows_its_own_rule) {
  const norm_case at{bench(), 50, 33, 9};
  const weight_grads sums = written(bench(), at);
  const weight_grads before{random_values<float>(33, 20), random_values<float>(33, 21)};
  const auto put = [](gradient_rule by, const floats& old, const floats& sum) {
    floats out;
    for (std::size_t j = 0; j < old.size(); ++j) {
      const float added = old[j] + sum[j];
      out.push_back(by == gradient_rule::write ? sum[j]
                    : by == gradient_rule::add ? added
                                               : old[j]);
    }
    return out;
  };
  const std::vector<gradient_rule> all{gradient_rule::write, gradient_rule::add,
                                       gradient_rule::leave,
                                       gradient_rule{7}};  // no rule: left alone
  for (const gradient_rule gain : all) {
    for (const gradient_rule bias : all) {
      const weight_grads got = weight_grad(bench(), at, {gain, bias}, before);
      expect_same_bits(got.gain, put(gain, before.gain, sums.gain));
      expect_same_bits(got.bias, put(bias, before.bias, sums.bias));
    }
  }
}

TEST_P(layer_norm_grad_op, without_rows_sums_are_zero) {
  const norm_case none{bench(), 0, 5};
  EXPECT_TRUE(input_grad(bench(), none).empty());
  const weight_grads sums = written(bench(), none);
  expect_same_bits(sums.gain, floats(5, 0.0F));
  expect_same_bits(sums.bias, floats(5, 0.0F));
  const weight_grads kept = weight_grad(bench(), none, {gradient_rule::add, gradient_rule::leave},
                                        {floats(5, 3.0F), floats(5, 4.0F)});
  expect_same_bits(kept.gain, floats(5, 3.0F));
  expect_same_bits(kept.bias, floats(5, 4.0F));
}

TEST_P(layer_norm_grad_op, refuse_sizes_that_do_not_fit) {
  const auto a = bench().put(floats(16));
  const auto words = bench().put(std::vector<std::int32_t>(2));
  const auto in = [&](std::size_t count) { return read<float>{a.span().subview(0, count)}; };
  const auto at = [&](std::size_t count) { return inout<float>{a.span().subview(0, count)}; };
  const auto dx = [&](std::size_t x, std::size_t gain, std::size_t stats, std::size_t dy,
                      std::size_t to, std::int64_t width) {
    launch(bench().on(), layer_norm_input_grad, in(x), in(gain), in(stats), in(dy),
           write<float>{a.span().subview(0, to)}, width);
  };
  EXPECT_THROW(dx(8, 4, 4, 8, 8, 3), usage_error);
  EXPECT_THROW(dx(8, 4, 4, 8, 8, 0), usage_error);
  EXPECT_THROW(dx(8, 3, 4, 8, 8, 4), usage_error);
  EXPECT_THROW(dx(8, 4, 3, 8, 8, 4), usage_error);
  EXPECT_THROW(dx(8, 4, 4, 4, 8, 4), usage_error);
  EXPECT_THROW(dx(8, 4, 4, 8, 4, 4), usage_error);
  const lending_stream on{bench().on()};
  const auto says = [&](std::size_t count) {
    return read<std::int32_t>{words.span().subview(0, count)};
  };
  const auto dw = [&](std::size_t stats, std::size_t dy, std::size_t gain, std::size_t bias,
                      std::size_t gain_rule, std::size_t bias_rule, std::int64_t width) {
    launch(on, layer_norm_weight_grad, in(8), in(stats), in(dy), at(gain), at(bias),
           says(gain_rule), says(bias_rule), width);
  };
  EXPECT_THROW(dw(4, 8, 4, 4, 1, 1, 3), usage_error);
  EXPECT_THROW(dw(4, 8, 4, 4, 1, 1, 0), usage_error);
  EXPECT_THROW(dw(3, 8, 4, 4, 1, 1, 4), usage_error);
  EXPECT_THROW(dw(4, 4, 4, 4, 1, 1, 4), usage_error);
  EXPECT_THROW(dw(4, 8, 3, 4, 1, 1, 4), usage_error);
  EXPECT_THROW(dw(4, 8, 4, 3, 1, 1, 4), usage_error);
  EXPECT_THROW(dw(4, 8, 4, 4, 0, 1, 4), usage_error);
  EXPECT_THROW(dw(4, 8, 4, 4, 2, 1, 4), usage_error);
  EXPECT_THROW(dw(4, 8, 4, 4, 1, 0, 4), usage_error);
  EXPECT_THROW(dw(4, 8, 4, 4, 1, 2, 4), usage_error);
}

TEST(layer_norm_grad, of_more_columns_than_a_grid_of_blocks_covers_is_refused) {
  constexpr std::int64_t most = 2'097'120;  // 65,535 blocks of 32
  constexpr auto columns = static_cast<std::size_t>(most);
  EXPECT_EQ(ops::layer_norm_weight_grad_rows(columns, 2, columns, columns, columns, 1, 1, most), 1);
  try {
    constexpr std::size_t more = columns + 1;
    ops::layer_norm_weight_grad_rows(more, 2, more, more, more, 1, 1, most + 1);
    FAIL() << "taken";
  } catch (const usage_error& refused) {
    EXPECT_STREQ(refused.what(),
                 "layer_norm_weight_grad: the width is 2097121, more than a grid of blocks covers; "
                 "give 2097120 at most");
  }
}

TEST(layer_norm_grad, the_cuts_between_threads_change_nothing) {
  op_bench bench{"cpu", 1};
  const norm_case at{bench, 101, 250, 10};
  cpu_call call{{}, odd_pieces()};
  const auto in = [](const floats& from) { return read<float>{view{from.data(), from.size()}}; };
  floats dx(at.x.size());
  ops::layer_norm_input_grad_cpu(call, in(at.x), in(at.gain), in(at.stats), in(at.dy),
                                 write<float>{view{dx.data(), dx.size()}}, 250);
  expect_same_bits(dx, input_grad(bench, at));
  weight_grads got{floats(250), floats(250)};
  const std::vector<std::int32_t> writes = word(gradient_rule::write);
  const read<std::int32_t> rule{view{writes.data(), writes.size()}};
  ops::layer_norm_weight_grad_cpu(
      call, in(at.x), in(at.stats), in(at.dy), inout<float>{view{got.gain.data(), got.gain.size()}},
      inout<float>{view{got.bias.data(), got.bias.size()}}, rule, rule, 250);
  const weight_grads expected = written(bench, at);
  expect_same_bits(got.gain, expected.gain);
  expect_same_bits(got.bias, expected.bias);
}

TEST(layer_norm_grad, cuda_gives_the_bits_of_the_cpu) {
  if (!gpu_or_skip()) GTEST_SKIP() << "no GPU answers";
  op_bench cpu{"cpu"};
  op_bench cuda{automatic_device()};
  for (const auto& [rows, width] : {std::pair{67U, 1000U}, {512U, 256U}, {8192U, 33U}}) {
    const norm_case at{cpu, rows, width, 11};
    expect_same_bits(input_grad(cuda, at), input_grad(cpu, at));
    const weight_grads got = written(cuda, at);
    const weight_grads expected = written(cpu, at);
    expect_same_bits(got.gain, expected.gain);
    expect_same_bits(got.bias, expected.bias);
  }
}

}  // namespace
}  // namespace reprise::test
