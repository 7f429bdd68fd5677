#include "reprise/ops/rms_norm.hpp"

#include "tests/ops/bench.hpp"

namespace reprise::test {
namespace {

constexpr float eps = 1e-6f;

struct shape {
  std::size_t rows, width;
};
const std::vector<shape> shapes = {{0, 8},     {1, 1},    {1, 7},    {3, 8},     {2, 100},
                                   {5, 128},   {40, 896}, {4, 4096}, {3, 4097},  {2, 4104},
                                   {2, 12288}, {1, 9001}, {300, 64}, {64, 1000}, {2, 2049}};

template <class A, class W>
std::vector<A> normed(op_bench& bench, const std::vector<A>& x, const std::vector<W>& gain,
                      place where = place::aligned) {
  const auto from = bench.put(x, where);
  const auto gains = bench.put(gain, where);
  const auto to = bench.template room<A>(x.size(), where);
  launch(bench.on(), rms_norm<A, W>, read<A>{from.span()}, read<W>{gains.span()},
         write<A>{to.span()}, static_cast<std::int64_t>(gain.size()), eps);
  return bench.take(to);
}

template <class A, class W>
std::vector<double> reference(const std::vector<A>& x, const std::vector<W>& gain) {
  std::vector<double> y(x.size());
  for (std::size_t first = 0; first < x.size(); first += gain.size()) {
    double sum = 0;
    for (std::size_t j = 0; j < gain.size(); ++j) {
      sum += std::pow(static_cast<double>(widen(x[first + j])), 2);
    }
    const double inverse = 1 / std::sqrt(sum / static_cast<double>(gain.size()) + double{eps});
    for (std::size_t j = 0; j < gain.size(); ++j) {
      y[first + j] = widen(x[first + j]) * inverse * widen(gain[j]);
    }
  }
  return y;
}

class rms_norm_op : public op_on_device {};
INSTANTIATE_TEST_SUITE_P(devices, rms_norm_op, testing::ValuesIn(plain_devices()), device_case);

TEST_P(rms_norm_op, agrees_with_a_double_reference_at_every_shape) {
  each_pair([&]<class A, class W>(types<A, W>) {
    for (const shape& s : shapes) {
      SCOPED_TRACE(testing::Message() << s.rows << " rows of " << s.width);
      const auto x = random_values<A>(s.rows * s.width, 1);
      const auto gain = random_values<W>(s.width, 2);
      expect_near(normed(bench(), x, gain), reference(x, gain), 1e-6);
    }
  });
}

TEST_P(rms_norm_op, spans_at_odd_addresses_give_the_same_bits) {
  each_pair([&]<class A, class W>(types<A, W>) {
    for (const shape& s : shapes) {
      SCOPED_TRACE(testing::Message() << s.rows << " rows of " << s.width);
      const auto x = random_values<A>(s.rows * s.width, 3);
      const auto gain = random_values<W>(s.width, 4);
      expect_same_bits(normed(bench(), x, gain, place::shifted), normed(bench(), x, gain));
    }
  });
}

TEST_P(rms_norm_op, each_row_has_the_bits_it_has_alone) {
  each_pair([&]<class A, class W>(types<A, W>) {
    for (const std::size_t width : {64, 1000, 4100}) {
      const auto x = random_values<A>(64 * width, 5);
      const auto gain = random_values<W>(width, 6);
      std::vector<A> alone;
      for (std::size_t row = 0; row < 64; ++row) {
        append(alone, normed(bench(), row_of(x, row, width), gain));
      }
      for (std::size_t m = 1; m <= 64; ++m) {
        // The last m rows, so that a row meets every position and other neighbours.
        expect_same_bits(normed(bench(), rows_from(x, 64 - m, width), gain),
                         rows_from(alone, 64 - m, width));
      }
    }
  });
}

TEST_P(rms_norm_op, works_in_place) {
  const auto x = random_values<float>(10 * 5000, 7);
  const auto gain = random_values<float>(5000, 8);
  const auto at = bench().put(x);
  const auto gains = bench().put(gain);
  launch(bench().on(), rms_norm<float, float>, read<float>{at.span()}, read<float>{gains.span()},
         write<float>{at.span()}, 5000, eps);
  expect_same_bits(bench().take(at), normed(bench(), x, gain));
}

TEST_P(rms_norm_op, refuses_sizes_that_do_not_fit) {
  const auto x = bench().put(random_values<float>(12, 9));
  const auto gain = bench().put(random_values<float>(4, 10));
  const auto run = [&](std::size_t size, std::size_t gains, std::int64_t width) {
    launch(bench().on(), rms_norm<float, float>, read<float>{x.span().subview(0, size)},
           read<float>{gain.span().subview(0, gains)}, write<float>{x.span().subview(0, size)},
           width, eps);
  };
  EXPECT_NO_THROW(run(12, 4, 4));
  EXPECT_THROW(run(11, 4, 4), usage_error);
  EXPECT_THROW(run(12, 3, 4), usage_error);
  EXPECT_THROW(run(12, 4, 0), usage_error);
  EXPECT_THROW(run(12, 4, -4), usage_error);
}

TEST(rms_norm, a_row_of_zeros_stays_zero) {
  op_bench bench{"cpu"};
  expect_same_bits(normed(bench, std::vector<float>(8), std::vector<float>(8, 3.0f)),
                   std::vector<float>(8));
}

TEST(rms_norm, the_cuts_between_threads_change_nothing) {
  const std::int64_t width = 4100;
  const auto x = random_values<float>(40 * 4100, 11);
  const auto gain = random_values<float>(4100, 12);
  std::vector<std::vector<float>> results;
  for (const worker_ref workers : {worker_ref{}, odd_pieces()}) {
    std::vector<float> y(x.size());
    cpu_call call{{}, workers};
    ops::rms_norm_cpu(call, read<float>{view<const float>{x.data(), x.size()}},
                      read<float>{view<const float>{gain.data(), gain.size()}},
                      write<float>{view<float>{y.data(), y.size()}}, width, eps);
    results.push_back(y);
  }
  expect_same_bits(results[0], results[1]);
}

TEST(rms_norm, cuda_gives_the_bits_of_the_cpu) {
  if (!gpu_or_skip()) GTEST_SKIP() << "no GPU answers";
  op_bench cpu{"cpu"};
  op_bench cuda{automatic_device()};
  each_pair([&]<class A, class W>(types<A, W>) {
    for (const shape& s : shapes) {
      SCOPED_TRACE(testing::Message() << s.rows << " rows of " << s.width);
      const auto x = random_values<A>(s.rows * s.width, 13, 100.0f);
      const auto gain = random_values<W>(s.width, 14);
      expect_same_bits(normed(cuda, x, gain), normed(cpu, x, gain));
    }
  });
}

}  // namespace
}  // namespace reprise::test
