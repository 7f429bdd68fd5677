#include "reprise/ops/silu.hpp"

#include <limits>

#include "reprise/ops/swiglu.hpp"
#include "tests/ops/bench.hpp"
#include "tests/ops/reference.hpp"

namespace reprise::test {
namespace {

using floats = std::vector<float>;

constexpr float infinity = std::numeric_limits<float>::infinity();

floats active(op_bench& bench, const floats& x, place where = place::aligned) {
  const auto xs = bench.put(x, where);
  const auto to = bench.room<float>(x.size(), where);
  launch(bench.on(), silu, read<float>{xs.span()}, write<float>{to.span()});
  return bench.take(to);
}

floats slopes(op_bench& bench, const floats& x, const floats& dy, place where = place::aligned) {
  const auto xs = bench.put(x, where);
  const auto above = bench.put(dy, where);
  const auto to = bench.room<float>(x.size(), where);
  launch(bench.on(), silu_grad, read<float>{xs.span()}, read<float>{above.span()},
         write<float>{to.span()});
  return bench.take(to);
}

double of_one(double x) {
  return x / (1 + std::exp(-x));
}

const std::vector<std::size_t> sizes{0, 1, 15, 16, 17, 3000};

class silu_op : public op_on_device {};
INSTANTIATE_TEST_SUITE_P(devices, silu_op, testing::ValuesIn(plain_devices()), device_case);

TEST_P(silu_op, agrees_with_a_double_reference_at_every_size) {
  for (const std::size_t size : sizes) {
    const auto x = random_values<float>(size, 1, 30.0F);
    std::vector<double> expected;
    for (const float value : x) expected.push_back(of_one(static_cast<double>(value)));
    const auto got = active(bench(), x);
    expect_near(got, expected, 1e-9);
    expect_same_bits(active(bench(), x, place::shifted), got);
  }
}

TEST_P(silu_op, has_the_bits_of_swiglu_with_nothing_to_gate) {
  const auto x = random_values<float>(1003, 2, 8.0F);
  const auto gate = bench().put(x);
  const auto up = bench().put(floats(x.size(), 1.0F));
  const auto out = bench().room<float>(x.size());
  launch(bench().on(), swiglu<float>, read<float>{gate.span()}, read<float>{up.span()},
         write<float>{out.span()});
  expect_same_bits(active(bench(), x), bench().take(out));
}

TEST_P(silu_op, the_gradient_agrees_with_central_differences) {
  for (const std::size_t size : sizes) {
    const auto x = random_values<float>(size, 3, 12.0F);
    const auto dy = random_values<float>(size, 4);
    std::vector<double> expected;
    for (std::size_t i = 0; i < size; ++i) {
      const auto slope = central_differences(
          [](const std::vector<double>& at) { return of_one(at[0]); }, {static_cast<double>(x[i])});
      expected.push_back(static_cast<double>(dy[i]) * slope[0]);
    }
    const auto got = slopes(bench(), x, dy);
    expect_near(got, expected, 1e-6);
    expect_same_bits(slopes(bench(), x, dy, place::shifted), got);
  }
}

TEST_P(silu_op, each_element_has_the_bits_it_has_alone) {
  const auto x = random_values<float>(131, 5, 6.0F);
  const auto dy = random_values<float>(131, 6);
  const auto values = active(bench(), x);
  const auto gradients = slopes(bench(), x, dy);
  for (std::size_t i = 0; i < x.size(); ++i) {
    expect_same_bits(active(bench(), {x[i]}), {values[i]});
    expect_same_bits(slopes(bench(), {x[i]}, {dy[i]}), {gradients[i]});
  }
}

TEST_P(silu_op, ends_as_the_formula_does_and_the_gradient_at_its_limits) {
  // Three times, so that vectors and what is left behind them both see the ends.
  floats x;
  for (int i = 0; i < 3; ++i) append(x, {-infinity, -3e38F, -200, -128, 128, 200, 3e38F, infinity});
  const auto values = active(bench(), x);
  const auto gradients = slopes(bench(), x, floats(x.size(), 2.0F));
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] == -infinity) {
      EXPECT_TRUE(std::isnan(values[i]));
    } else {
      EXPECT_EQ(values[i], x[i] < 0 ? 0.0F : x[i]);
    }
    EXPECT_EQ(gradients[i], x[i] < 0 ? 0.0F : 2.0F) << x[i];
  }
  EXPECT_EQ(slopes(bench(), {0.0F}, {3.0F})[0], 1.5F);
  EXPECT_TRUE(std::isnan(active(bench(), {std::nanf("")})[0]));
  EXPECT_TRUE(std::isnan(slopes(bench(), {std::nanf("")}, {1.0F})[0]));
}

TEST_P(silu_op, outputs_may_overwrite_inputs) {
  const auto x = random_values<float>(5000, 7);
  const auto dy = random_values<float>(5000, 8);
  const auto xs = bench().put(x);
  launch(bench().on(), silu, read<float>{xs.span()}, write<float>{xs.span()});
  expect_same_bits(bench().take(xs), active(bench(), x));
  for (const bool over_dy : {true, false}) {
    const auto again = bench().put(x);
    const auto above = bench().put(dy);
    const auto& to = over_dy ? above : again;
    launch(bench().on(), silu_grad, read<float>{again.span()}, read<float>{above.span()},
           write<float>{to.span()});
    expect_same_bits(bench().take(to), slopes(bench(), x, dy));
  }
}

TEST_P(silu_op, refuses_sizes_that_differ) {
  const auto a = bench().put(floats(8));
  const auto in = [&](std::size_t count) { return read<float>{a.span().subview(0, count)}; };
  const auto out = [&](std::size_t count) { return write<float>{a.span().subview(0, count)}; };
  EXPECT_THROW(launch(bench().on(), silu, in(8), out(7)), usage_error);
  EXPECT_THROW(launch(bench().on(), silu_grad, in(8), in(7), out(8)), usage_error);
  EXPECT_THROW(launch(bench().on(), silu_grad, in(8), in(8), out(7)), usage_error);
}

TEST(silu, the_cuts_between_threads_change_nothing) {
  const auto x = random_values<float>(20001, 9);
  const auto dy = random_values<float>(20001, 10);
  floats dx(x.size());
  cpu_call call{{}, odd_pieces()};
  ops::silu_grad_cpu(call, read<float>{view{x.data(), x.size()}},
                     read<float>{view{dy.data(), dy.size()}},
                     write<float>{view{dx.data(), dx.size()}});
  op_bench bench{"cpu", 1};
  expect_same_bits(dx, slopes(bench, x, dy));
}

TEST(silu, cuda_gives_the_bits_of_the_cpu) {
  if (!gpu_or_skip()) GTEST_SKIP() << "no GPU answers";
  op_bench cpu{"cpu"};
  op_bench cuda{automatic_device()};
  for (const float scale : {1e-6F, 1.0F, 100.0F}) {
    const auto x = random_values<float>(1 << 20, 11, scale);
    const auto dy = random_values<float>(x.size(), 12);
    expect_same_bits(active(cuda, x), active(cpu, x));
    expect_same_bits(slopes(cuda, x, dy), slopes(cpu, x, dy));
  }
}

}  // namespace
}  // namespace reprise::test
