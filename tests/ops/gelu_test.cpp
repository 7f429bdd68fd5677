#include "reprise/ops/gelu.hpp"

#include <limits>

#include "tests/ops/bench.hpp"
#include "tests/ops/reference.hpp"

namespace reprise::test {
namespace {

std::vector<float> active(op_bench& bench, const std::vector<float>& x,
                          place where = place::aligned) {
  const auto xs = bench.put(x, where);
  const auto to = bench.room<float>(x.size(), where);
  launch(bench.on(), gelu, read<float>{xs.span()}, write<float>{to.span()});
  return bench.take(to);
}

std::vector<float> slopes(op_bench& bench, const std::vector<float>& x,
                          const std::vector<float>& dy, place where = place::aligned) {
  const auto xs = bench.put(x, where);
  const auto above = bench.put(dy, where);
  const auto to = bench.room<float>(x.size(), where);
  launch(bench.on(), gelu_grad, read<float>{xs.span()}, read<float>{above.span()},
         write<float>{to.span()});
  return bench.take(to);
}

double of_one(double v) {
  return 0.5 * v * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
}

std::vector<double> reference(const std::vector<float>& x) {
  std::vector<double> out;
  for (const float value : x) out.push_back(of_one(static_cast<double>(value)));
  return out;
}

class gelu_op : public op_on_device {};
INSTANTIATE_TEST_SUITE_P(devices, gelu_op, testing::ValuesIn(plain_devices()), device_case);

TEST_P(gelu_op, agrees_with_a_double_reference_at_every_size) {
  for (const std::size_t size : {0U, 1U, 15U, 16U, 17U, 1000U, 100001U}) {
    SCOPED_TRACE(size);
    const auto x = random_values<float>(size, 1, 8.0F);
    const auto got = active(bench(), x);
    expect_near(got, reference(x), 1e-6);
    expect_same_bits(active(bench(), x, place::shifted), got);
  }
}

TEST_P(gelu_op, each_element_has_the_bits_it_has_alone) {
  const auto x = random_values<float>(131, 2, 6.0F);
  const auto together = active(bench(), x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    expect_same_bits(active(bench(), {x[i]}), {together[i]});
  }
}

TEST_P(gelu_op, saturates_and_keeps_a_nan) {
  const auto out = active(bench(), {-1000.0F, 1000.0F, 0.0F, std::nanf(""), -3e38F, 3e38F});
  EXPECT_EQ(out[0], 0.0F);
  EXPECT_EQ(out[1], 1000.0F);
  EXPECT_EQ(out[2], 0.0F);
  EXPECT_TRUE(std::isnan(out[3]));
  EXPECT_EQ(out[4], 0.0F);
  EXPECT_EQ(out[5], 3e38F);
}

TEST_P(gelu_op, works_in_place) {
  const auto x = random_values<float>(5000, 3);
  const auto xs = bench().put(x);
  launch(bench().on(), gelu, read<float>{xs.span()}, write<float>{xs.span()});
  expect_same_bits(bench().take(xs), active(bench(), x));
}

TEST_P(gelu_op, the_gradient_agrees_with_central_differences) {
  for (const std::size_t size : {0U, 1U, 15U, 16U, 17U, 3000U}) {
    SCOPED_TRACE(size);
    const auto x = random_values<float>(size, 6, 8.0F);
    const auto dy = random_values<float>(size, 7);
    std::vector<double> expected;
    for (std::size_t i = 0; i < size; ++i) {
      const auto slope = central_differences(
          [](const std::vector<double>& at) { return of_one(at[0]); }, {static_cast<double>(x[i])});
      expected.push_back(static_cast<double>(dy[i]) * slope[0]);
    }
    const auto got = slopes(bench(), x, dy);
    expect_near(got, expected, 2e-6);
    expect_same_bits(slopes(bench(), x, dy, place::shifted), got);
  }
}

TEST_P(gelu_op, each_element_of_the_gradient_has_the_bits_it_has_alone) {
  const auto x = random_values<float>(131, 8, 6.0F);
  const auto dy = random_values<float>(131, 9);
  const auto together = slopes(bench(), x, dy);
  for (std::size_t i = 0; i < x.size(); ++i) {
    expect_same_bits(slopes(bench(), {x[i]}, {dy[i]}), {together[i]});
  }
}

TEST_P(gelu_op, the_gradient_has_its_limits_at_both_ends) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  // Twice, so that vectors and what is left behind them both see the ends.
  std::vector<float> x;
  for (int i = 0; i < 3; ++i) append(x, {-infinity, -3e38F, -40, -16, 16, 40, 3e38F, infinity});
  const auto got = slopes(bench(), x, std::vector<float>(x.size(), 2.0F));
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(got[i], x[i] < 0 ? 0.0F : 2.0F) << x[i];
  EXPECT_EQ(slopes(bench(), {0.0F}, {3.0F})[0], 1.5F);
  EXPECT_TRUE(std::isnan(slopes(bench(), {std::nanf("")}, {1.0F})[0]));
}

TEST_P(gelu_op, the_gradient_may_overwrite_either_input) {
  const auto x = random_values<float>(5000, 10);
  const auto dy = random_values<float>(5000, 11);
  const auto expected = slopes(bench(), x, dy);
  for (const bool over_dy : {true, false}) {
    const auto xs = bench().put(x);
    const auto above = bench().put(dy);
    const auto& to = over_dy ? above : xs;
    launch(bench().on(), gelu_grad, read<float>{xs.span()}, read<float>{above.span()},
           write<float>{to.span()});
    expect_same_bits(bench().take(to), expected);
  }
}

TEST_P(gelu_op, refuses_sizes_that_differ) {
  const auto a = bench().put(std::vector<float>(8));
  EXPECT_THROW(
      launch(bench().on(), gelu, read<float>{a.span()}, write<float>{a.span().subview(0, 7)}),
      usage_error);
  const auto grad = [&](std::size_t x, std::size_t dy, std::size_t dx) {
    launch(bench().on(), gelu_grad, read<float>{a.span().subview(0, x)},
           read<float>{a.span().subview(0, dy)}, write<float>{a.span().subview(0, dx)});
  };
  EXPECT_THROW(grad(8, 7, 8), usage_error);
  EXPECT_THROW(grad(8, 8, 7), usage_error);
}

TEST(gelu, the_cuts_between_threads_change_nothing) {
  const auto x = random_values<float>(20001, 4);
  std::vector<float> out(x.size());
  cpu_call call{{}, odd_pieces()};
  ops::gelu_cpu(call, read<float>{view{x.data(), x.size()}},
                write<float>{view{out.data(), out.size()}});
  op_bench bench{"cpu", 1};
  expect_same_bits(out, active(bench, x));
}

TEST(gelu, cuda_gives_the_bits_of_the_cpu) {
  if (!gpu_or_skip()) GTEST_SKIP() << "no GPU answers";
  op_bench cpu{"cpu"};
  op_bench cuda{automatic_device()};
  for (const float scale : {1e-6F, 1.0F, 10.0F, 1e30F}) {
    const auto x = random_values<float>(1 << 20, 5, scale);
    expect_same_bits(active(cuda, x), active(cpu, x));
    const auto dy = random_values<float>(x.size(), 12);
    expect_same_bits(slopes(cuda, x, dy), slopes(cpu, x, dy));
  }
}

}  // namespace
}  // namespace reprise::test
