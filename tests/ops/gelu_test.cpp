#include "reprise/ops/gelu.hpp"

#include "tests/ops/bench.hpp"

namespace reprise::test {
namespace {

std::vector<float> active(op_bench& bench, const std::vector<float>& x,
                          place where = place::aligned) {
  const auto xs = bench.put(x, where);
  const auto to = bench.room<float>(x.size(), where);
  launch(bench.on(), gelu, read<float>{xs.span()}, write<float>{to.span()});
  return bench.take(to);
}

std::vector<double> reference(const std::vector<float>& x) {
  std::vector<double> out;
  for (const float value : x) {
    const double v = static_cast<double>(value);
    out.push_back(0.5 * v * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v))));
  }
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

TEST_P(gelu_op, refuses_sizes_that_differ) {
  const auto a = bench().put(std::vector<float>(8));
  EXPECT_THROW(
      launch(bench().on(), gelu, read<float>{a.span()}, write<float>{a.span().subview(0, 7)}),
      usage_error);
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
  }
}

}  // namespace
}  // namespace reprise::test
