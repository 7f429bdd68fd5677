#include "reprise/ops/batch_norm_grad.hpp"

#include "reprise/ops/batch_norm.hpp"
#include "tests/ops/bench.hpp"
#include "tests/ops/reference.hpp"

namespace reprise::test {
namespace {

using floats = std::vector<float>;
using doubles = std::vector<double>;

constexpr float epsilon = 1e-5F;

// What a backward is given: rows, the gain, and the gradient of what the forward wrote.
struct norm_case {
  std::size_t width;
  floats x, gain, bias, dy, stats, running;

  norm_case(op_bench& bench, std::size_t rows, std::size_t wide, std::uint64_t seed = 1)
      : width{wide},
        x{random_values<float>(rows * wide, seed, 3.0F)},
        gain{random_values<float>(wide, seed + 1)},
        bias{random_values<float>(wide, seed + 2)},
        dy{random_values<float>(rows * wide, seed + 3)},
        running(2 * wide, 1.0F) {
    const auto xs = bench.put(x);
    const auto gains = bench.put(gain);
    const auto biases = bench.put(bias);
    const auto moved = bench.put(running);
    const auto y = bench.room<float>(x.size());
    const auto to = bench.room<float>(2 * wide);
    const lending_stream on{bench.on()};
    launch(on, batch_norm, read<float>{xs.span()}, read<float>{gains.span()},
           read<float>{biases.span()}, inout<float>{moved.span()}, write<float>{y.span()},
           write<float>{to.span()}, static_cast<std::int64_t>(wide), epsilon, 0.5F);
    stats = bench.take(to);
    running = bench.take(moved);
  }

  std::size_t rows() const { return x.size() / width; }
};

struct weight_grads {
  floats sums, gain, bias;
};
struct rules {
  gradient_rule gain, bias;
};

std::vector<std::int32_t> word(gradient_rule rule) {
  return {static_cast<std::int32_t>(rule)};
}

weight_grads weight_grad(op_bench& bench, const norm_case& at, const rules& by,
                         const floats& gain_before, const floats& bias_before,
                         place where = place::aligned) {
  const auto x = bench.put(at.x, where);
  const auto stats = bench.put(at.stats, where);
  const auto dy = bench.put(at.dy, where);
  const auto sums = bench.room<float>(2 * at.width, where);
  const auto dgain = bench.put(gain_before, where);
  const auto dbias = bench.put(bias_before, where);
  const auto gain_rule = bench.put(word(by.gain));
  const auto bias_rule = bench.put(word(by.bias));
  const lending_stream on{bench.on()};
  launch(on, batch_norm_weight_grad, read<float>{x.span()}, read<float>{stats.span()},
         read<float>{dy.span()}, write<float>{sums.span()}, inout<float>{dgain.span()},
         inout<float>{dbias.span()}, read<std::int32_t>{gain_rule.span()},
         read<std::int32_t>{bias_rule.span()}, static_cast<std::int64_t>(at.width));
  return {bench.take(sums), bench.take(dgain), bench.take(dbias)};
}

weight_grads written(op_bench& bench, const norm_case& at, place where = place::aligned) {
  const floats nothing(at.width, std::nanf(""));
  return weight_grad(bench, at, {gradient_rule::write, gradient_rule::write}, nothing, nothing,
                     where);
}

floats input_grad(op_bench& bench, const norm_case& at, const floats& sums,
                  place where = place::aligned) {
  const auto x = bench.put(at.x, where);
  const auto gain = bench.put(at.gain, where);
  const auto stats = bench.put(at.stats, where);
  const auto of = bench.put(sums, where);
  const auto dy = bench.put(at.dy, where);
  const auto dx = bench.room<float>(at.x.size(), where);
  launch(bench.on(), batch_norm_input_grad, read<float>{x.span()}, read<float>{gain.span()},
         read<float>{stats.span()}, read<float>{of.span()}, read<float>{dy.span()},
         write<float>{dx.span()}, static_cast<std::int64_t>(at.width));
  return bench.take(dx);
}

floats frozen_grad(op_bench& bench, const norm_case& at, place where = place::aligned) {
  const auto gain = bench.put(at.gain, where);
  const auto running = bench.put(at.running, where);
  const auto dy = bench.put(at.dy, where);
  const auto dx = bench.room<float>(at.dy.size(), where);
  launch(bench.on(), frozen_batch_norm_grad, read<float>{gain.span()}, read<float>{running.span()},
         read<float>{dy.span()}, write<float>{dx.span()}, static_cast<std::int64_t>(at.width),
         epsilon);
  return bench.take(dx);
}

// sum of dy * y over all rows, for doubles in place of x, of gain and of bias.
double weighed(const norm_case& at, const doubles& x, const doubles& gain, const doubles& bias) {
  double sum = 0;
  const auto m = static_cast<double>(at.rows());
  for (std::size_t j = 0; j < at.width; ++j) {
    double mean = 0;
    double variance = 0;
    for (std::size_t i = j; i < x.size(); i += at.width) mean += x[i] / m;
    for (std::size_t i = j; i < x.size(); i += at.width) {
      variance += (x[i] - mean) * (x[i] - mean) / m;
    }
    const double inverse = 1 / std::sqrt(variance + static_cast<double>(epsilon));
    for (std::size_t i = j; i < x.size(); i += at.width) {
      sum += static_cast<double>(at.dy[i]) * ((x[i] - mean) * inverse * gain[j] + bias[j]);
    }
  }
  return sum;
}

class batch_norm_grad_op : public op_on_device {};
INSTANTIATE_TEST_SUITE_P(devices, batch_norm_grad_op, testing::ValuesIn(plain_devices()),
                         device_case);

TEST_P(batch_norm_grad_op, agree_with_central_differences) {
  for (const auto& [rows, width] : {std::pair{3U, 40U}, {40U, 3U}, {33U, 5U}}) {
    SCOPED_TRACE(rows);
    const norm_case at{bench(), rows, width};
    const doubles x = wide(at.x);
    const doubles gain = wide(at.gain);
    const doubles bias = wide(at.bias);
    const weight_grads got = written(bench(), at);
    expect_near(
        input_grad(bench(), at, got.sums),
        central_differences([&](const doubles& v) { return weighed(at, v, gain, bias); }, x, 1e-4),
        3e-5);
    expect_near(
        got.gain,
        central_differences([&](const doubles& v) { return weighed(at, x, v, bias); }, gain), 1e-5);
    expect_near(
        got.bias,
        central_differences([&](const doubles& v) { return weighed(at, x, gain, v); }, bias), 1e-5);
  }
}

TEST_P(batch_norm_grad_op, round_each_operation_as_documented) {
  for (const std::size_t rows : {2U, 31U, 33U, 100U, 512U, 2000U}) {
    SCOPED_TRACE(rows);
    const norm_case at{bench(), rows, 37, 7};
    const weight_grads got = written(bench(), at);
    const floats dx = input_grad(bench(), at, got.sums);
    const auto m = static_cast<float>(rows);
    for (std::size_t j = 0; j < at.width; ++j) {
      const float mean = at.stats[j];
      const float inverse = at.stats[at.width + j];
      const auto unit = [&](std::size_t row) { return (at.x[row * 37 + j] - mean) * inverse; };
      floats gains;
      floats biases;
      for (std::size_t first = 0; first < rows; first += 32) {
        floats of_gain;
        floats of_bias;
        for (std::size_t row = first; row < std::min(first + 32, rows); ++row) {
          of_gain.push_back(at.dy[row * 37 + j] * unit(row));
          of_bias.push_back(at.dy[row * 37 + j]);
        }
        gains.push_back(in_slots(of_gain, 8));
        biases.push_back(in_slots(of_bias, 8));
      }
      const float along = in_slots(gains, 32);
      const float sum = in_slots(biases, 32);
      ASSERT_EQ(got.gain[j], along) << j;
      ASSERT_EQ(got.bias[j], sum) << j;
      ASSERT_EQ(got.sums[j], along) << j;
      ASSERT_EQ(got.sums[37 + j], sum) << j;
      for (const std::size_t row : {std::size_t{0}, rows - 1}) {
        const float off = at.dy[row * 37 + j] - sum / m;
        const float shared = unit(row) * (along / m);
        ASSERT_EQ(dx[row * 37 + j], at.gain[j] * inverse * (off - shared)) << j;
      }
    }
  }
}

TEST_P(batch_norm_grad_op, a_column_has_the_bits_it_has_beside_others) {
  const norm_case all{bench(), 100, 70, 8};
  const weight_grads together = written(bench(), all);
  const floats dx = input_grad(bench(), all, together.sums);
  const weight_grads shifted = written(bench(), all, place::shifted);
  expect_same_bits(shifted.sums, together.sums);
  expect_same_bits(shifted.gain, together.gain);
  expect_same_bits(shifted.bias, together.bias);
  expect_same_bits(input_grad(bench(), all, together.sums, place::shifted), dx);
  for (const std::size_t j : {0U, 31U, 32U, 69U}) {
    norm_case one = all;
    one.width = 1;
    one.gain = {all.gain[j]};
    one.stats = {all.stats[j], all.stats[70 + j]};
    one.x.clear();
    one.dy.clear();
    for (std::size_t row = 0; row < 100; ++row) {
      one.x.push_back(all.x[row * 70 + j]);
      one.dy.push_back(all.dy[row * 70 + j]);
    }
    const weight_grads alone = written(bench(), one);
    expect_same_bits(alone.sums, {together.sums[j], together.sums[70 + j]});
    const floats of_one = input_grad(bench(), one, alone.sums);
    for (std::size_t row = 0; row < 100; ++row) ASSERT_EQ(of_one[row], dx[row * 70 + j]);
  }
}

TEST_P(batch_norm_grad_op, each_gradient_follows_its_own_rule_and_sums_are_always_there) {
  const norm_case at{bench(), 50, 33, 9};
  const weight_grads sums = written(bench(), at);
  const floats gain_before = random_values<float>(33, 20);
  const floats bias_before = random_values<float>(33, 21);
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
      const weight_grads got = weight_grad(bench(), at, {gain, bias}, gain_before, bias_before);
      expect_same_bits(got.sums, sums.sums);
      expect_same_bits(got.gain, put(gain, gain_before, sums.gain));
      expect_same_bits(got.bias, put(bias, bias_before, sums.bias));
    }
  }
}

TEST_P(batch_norm_grad_op, form_the_sums_where_nobody_trains_gain_and_bias) {
  const norm_case at{bench(), 50, 33, 10};
  const auto x = bench().put(at.x);
  const auto stats = bench().put(at.stats);
  const auto dy = bench().put(at.dy);
  const auto sums = bench().room<float>(66);
  const lending_stream on{bench().on()};
  const inout<float> nothing{view<float>{}};
  const read<std::int32_t> no_rule{view<const std::int32_t>{}};
  launch(on, batch_norm_weight_grad, read<float>{x.span()}, read<float>{stats.span()},
         read<float>{dy.span()}, write<float>{sums.span()}, nothing, nothing, no_rule, no_rule, 33);
  expect_same_bits(bench().take(sums), written(bench(), at).sums);
}

TEST_P(batch_norm_grad_op, the_input_gradient_may_overwrite_either) {
  const norm_case at{bench(), 40, 50, 6};
  const floats sums = written(bench(), at).sums;
  const floats expected = input_grad(bench(), at, sums);
  for (const bool over_dy : {true, false}) {
    const auto x = bench().put(at.x);
    const auto gain = bench().put(at.gain);
    const auto stats = bench().put(at.stats);
    const auto of = bench().put(sums);
    const auto dy = bench().put(at.dy);
    const auto& to = over_dy ? dy : x;
    launch(bench().on(), batch_norm_input_grad, read<float>{x.span()}, read<float>{gain.span()},
           read<float>{stats.span()}, read<float>{of.span()}, read<float>{dy.span()},
           write<float>{to.span()}, 50);
    expect_same_bits(bench().take(to), expected);
  }
}

TEST_P(batch_norm_grad_op, by_frozen_statistics_is_its_formula) {
  for (const std::size_t width : {1U, 32U, 70U}) {
    const norm_case at{bench(), 45, width, 11};
    floats want;
    for (std::size_t i = 0; i < at.dy.size(); ++i) {
      const std::size_t j = i % width;
      const float inverse = 1.0F / std::sqrt(at.running[width + j] + epsilon);
      want.push_back(at.dy[i] * (at.gain[j] * inverse));
    }
    expect_same_bits(frozen_grad(bench(), at), want);
    expect_same_bits(frozen_grad(bench(), at, place::shifted), want);
  }
}

TEST_P(batch_norm_grad_op, refuse_sizes_that_do_not_fit) {
  const auto a = bench().put(floats(16));
  const auto words = bench().put(std::vector<std::int32_t>(2));
  const auto in = [&](std::size_t count) { return read<float>{a.span().subview(0, count)}; };
  const auto at = [&](std::size_t count) { return inout<float>{a.span().subview(0, count)}; };
  const auto to = [&](std::size_t count) { return write<float>{a.span().subview(0, count)}; };
  const auto dx = [&](std::size_t x, std::size_t gain, std::size_t stats, std::size_t sums,
                      std::size_t dy, std::size_t out, std::int64_t width) {
    launch(bench().on(), batch_norm_input_grad, in(x), in(gain), in(stats), in(sums), in(dy),
           to(out), width);
  };
  EXPECT_THROW(dx(8, 4, 8, 8, 8, 8, 3), usage_error);
  EXPECT_THROW(dx(8, 3, 8, 8, 8, 8, 4), usage_error);
  EXPECT_THROW(dx(8, 4, 7, 8, 8, 8, 4), usage_error);
  EXPECT_THROW(dx(8, 4, 8, 7, 8, 8, 4), usage_error);
  EXPECT_THROW(dx(8, 4, 8, 8, 7, 8, 4), usage_error);
  EXPECT_THROW(dx(8, 4, 8, 8, 8, 7, 4), usage_error);
  const lending_stream on{bench().on()};
  const auto dw = [&](std::size_t stats, std::size_t dy, std::size_t sums, std::size_t gain,
                      std::size_t bias, std::size_t gain_rule, std::size_t bias_rule,
                      std::int64_t width) {
    const auto says = [&](std::size_t count) {
      return read<std::int32_t>{words.span().subview(0, count)};
    };
    launch(on, batch_norm_weight_grad, in(8), in(stats), in(dy), to(sums), at(gain), at(bias),
           says(gain_rule), says(bias_rule), width);
  };
  EXPECT_THROW(dw(8, 8, 8, 4, 4, 1, 1, 3), usage_error);
  EXPECT_THROW(dw(7, 8, 8, 4, 4, 1, 1, 4), usage_error);
  EXPECT_THROW(dw(8, 7, 8, 4, 4, 1, 1, 4), usage_error);
  EXPECT_THROW(dw(8, 8, 7, 4, 4, 1, 1, 4), usage_error);
  EXPECT_THROW(dw(8, 8, 8, 0, 4, 1, 1, 4), usage_error);
  EXPECT_THROW(dw(8, 8, 8, 4, 0, 1, 1, 4), usage_error);
  EXPECT_THROW(dw(8, 8, 8, 4, 4, 0, 1, 4), usage_error);
  EXPECT_THROW(dw(8, 8, 8, 4, 4, 1, 2, 4), usage_error);
  const auto still = [&](std::size_t gain, std::size_t running, std::size_t dy, std::size_t out) {
    launch(bench().on(), frozen_batch_norm_grad, in(gain), in(running), in(dy), to(out), 4,
           epsilon);
  };
  EXPECT_THROW(still(3, 8, 8, 8), usage_error);
  EXPECT_THROW(still(4, 7, 8, 8), usage_error);
  EXPECT_THROW(still(4, 8, 7, 7), usage_error);
  EXPECT_THROW(still(4, 8, 8, 7), usage_error);
}

TEST(batch_norm_grad, the_cuts_between_threads_change_nothing) {
  op_bench bench{"cpu", 1};
  const norm_case at{bench, 101, 250, 10};
  cpu_call call{{}, odd_pieces()};
  const auto in = [](const floats& from) { return read<float>{view{from.data(), from.size()}}; };
  const auto to = [](floats& all) { return write<float>{view{all.data(), all.size()}}; };
  const auto inside = [](floats& all) { return inout<float>{view{all.data(), all.size()}}; };
  weight_grads got{floats(500), floats(250), floats(250)};
  const std::vector<std::int32_t> writes = word(gradient_rule::write);
  const read<std::int32_t> rule{view{writes.data(), writes.size()}};
  ops::batch_norm_weight_grad_cpu(call, in(at.x), in(at.stats), in(at.dy), to(got.sums),
                                  inside(got.gain), inside(got.bias), rule, rule, 250);
  const weight_grads expected = written(bench, at);
  expect_same_bits(got.sums, expected.sums);
  expect_same_bits(got.gain, expected.gain);
  expect_same_bits(got.bias, expected.bias);
  floats dx(at.x.size());
  ops::batch_norm_input_grad_cpu(call, in(at.x), in(at.gain), in(at.stats), in(got.sums), in(at.dy),
                                 to(dx), 250);
  expect_same_bits(dx, input_grad(bench, at, expected.sums));
}

TEST(batch_norm_grad, cuda_gives_the_bits_of_the_cpu) {
  if (!gpu_or_skip()) GTEST_SKIP() << "no GPU answers";
  op_bench cpu{"cpu"};
  op_bench cuda{automatic_device()};
  for (const auto& [rows, width] : {std::pair{67U, 1000U}, {512U, 256U}, {8192U, 33U}}) {
    const norm_case at{cpu, rows, width, 11};
    const weight_grads got = written(cuda, at);
    const weight_grads expected = written(cpu, at);
    expect_same_bits(got.sums, expected.sums);
    expect_same_bits(got.gain, expected.gain);
    expect_same_bits(got.bias, expected.bias);
    expect_same_bits(input_grad(cuda, at, got.sums), input_grad(cpu, at, got.sums));
    expect_same_bits(frozen_grad(cuda, at), frozen_grad(cpu, at));
  }
}

}  // namespace
}  // namespace reprise::test
