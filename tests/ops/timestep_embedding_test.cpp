#include "reprise/ops/timestep_embedding.hpp"

#include "tests/ops/bench.hpp"

namespace reprise::test {
namespace {

std::vector<float> embedded(op_bench& bench, const std::vector<float>& times, std::int64_t width,
                            place where = place::aligned) {
  const auto ts = bench.put(times, where);
  const auto to = bench.room<float>(times.size() * static_cast<std::size_t>(width), where);
  launch(bench.on(), timestep_embedding, read<float>{ts.span()}, write<float>{to.span()}, width);
  return bench.take(to);
}

std::vector<double> reference(const std::vector<float>& times, std::int64_t width) {
  const std::int64_t half = width / 2;
  std::vector<double> out(times.size() * static_cast<std::size_t>(width));
  for (std::size_t row = 0; row < times.size(); ++row) {
    for (std::int64_t j = 0; j < half; ++j) {
      const double frequency =
          1000 * std::pow(10000.0, -static_cast<double>(j) / static_cast<double>(half));
      const double angle = static_cast<double>(times[row]) * frequency;
      const std::size_t at = row * static_cast<std::size_t>(width) + static_cast<std::size_t>(j);
      out[at] = std::cos(angle);
      out[at + static_cast<std::size_t>(half)] = std::sin(angle);
    }
  }
  return out;
}

const std::vector<float> some_times{0.0F, 0.001F, 0.05F, 0.5F, 0.999F, 1.0F};

class timestep_embedding_op : public op_on_device {};
INSTANTIATE_TEST_SUITE_P(devices, timestep_embedding_op, testing::ValuesIn(plain_devices()),
                         device_case);

// An angle of up to 1000 is rounded to f32 before its sine is taken.
TEST_P(timestep_embedding_op, agrees_with_a_double_reference_at_every_width) {
  for (const std::int64_t width : {2, 8, 64, 130}) {
    const auto got = embedded(bench(), some_times, width);
    expect_near(got, reference(some_times, width), 2e-4);
    expect_same_bits(embedded(bench(), some_times, width, place::shifted), got);
  }
}

TEST_P(timestep_embedding_op, a_row_has_the_bits_it_has_alone) {
  const auto together = embedded(bench(), some_times, 64);
  for (std::size_t row = 0; row < some_times.size(); ++row) {
    expect_same_bits(embedded(bench(), {some_times[row]}, 64), row_of(together, row, 64));
  }
}

TEST_P(timestep_embedding_op, time_zero_is_cosines_of_one_and_sines_of_zero) {
  std::vector<float> expected(64, 0.0F);
  std::fill_n(expected.begin(), 32, 1.0F);
  expect_same_bits(embedded(bench(), {0.0F}, 64), expected);
}

TEST_P(timestep_embedding_op, refuses_odd_widths_and_sizes_that_do_not_fit) {
  const auto a = bench().put(std::vector<float>(16));
  const auto run = [&](std::size_t times, std::size_t out, std::int64_t width) {
    launch(bench().on(), timestep_embedding, read<float>{a.span().subview(0, times)},
           write<float>{a.span().subview(0, out)}, width);
  };
  EXPECT_THROW(run(2, 6, 3), usage_error);
  EXPECT_THROW(run(2, 0, 0), usage_error);
  EXPECT_THROW(run(2, 4, 4), usage_error);
}

TEST(timestep_embedding, cuda_gives_the_bits_of_the_cpu) {
  if (!gpu_or_skip()) GTEST_SKIP() << "no GPU answers";
  op_bench cpu{"cpu"};
  op_bench cuda{automatic_device()};
  auto times = random_values<float>(1000, 1, 1.0F);
  times.insert(times.end(), some_times.begin(), some_times.end());
  expect_same_bits(embedded(cuda, times, 64), embedded(cpu, times, 64));
}

}  // namespace
}  // namespace reprise::test
