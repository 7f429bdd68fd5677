#include "reprise/ops/matmul.hpp"

#include <limits>

#include "reprise/ops/lanes.hpp"
#include "tests/ops/bench.hpp"

namespace reprise::test {
namespace {

struct shape {
  std::size_t m, n, k;
};
const std::vector<shape> shapes = {
    {0, 8, 8},     {3, 0, 8},      {1, 1, 1},      {1, 5, 7},       {2, 3, 8},      {4, 16, 16},
    {4, 192, 192}, {5, 64, 192},   {8, 17, 33},    {9, 33, 40},     {16, 31, 264},  {17, 130, 96},
    {33, 15, 71},  {1, 512, 4096}, {7, 100, 1000}, {3, 4100, 2048}, {65, 256, 640}, {200, 48, 72}};

enum class form { plain, added };

template <class A, class W>
std::vector<A> product(op_bench& bench, form what, const std::vector<A>& x, const std::vector<W>& w,
                       const std::vector<A>& before, const shape& s, place where = place::aligned) {
  const auto left = bench.put(x, where);
  const auto right = bench.put(w, where);
  const auto n = static_cast<std::int64_t>(s.n);
  const auto k = static_cast<std::int64_t>(s.k);
  const auto to =
      what == form::plain ? bench.template room<A>(before.size(), where) : bench.put(before, where);
  if (what == form::plain) {
    launch(bench.on(), matmul<A, W>, read<A>{left.span()}, read<W>{right.span()},
           write<A>{to.span()}, n, k);
  } else {
    launch(bench.on(), matmul_add<A, W>, read<A>{left.span()}, read<W>{right.span()},
           inout<A>{to.span()}, n, k);
  }
  return bench.take(to);
}

template <class A, class W>
struct inputs {
  inputs(const shape& s, std::uint64_t seed)
      : x{random_values<A>(s.m * s.k, seed)},
        w{random_values<W>(s.n * s.k, seed + 1)},
        before{random_values<A>(s.m * s.n, seed + 2)} {}

  std::vector<A> x;
  std::vector<W> w;
  std::vector<A> before;
};

// What one f32 sum in any sensible order stays within, as a part of the sum of magnitudes.
constexpr double sum_error = 2e-6;

template <class A, class W>
void expect_product(const std::vector<A>& y, form what, const inputs<A, W>& in, const shape& s) {
  ASSERT_EQ(y.size(), s.m * s.n);
  for (std::size_t at = 0; at < y.size(); ++at) {
    const std::size_t i = at / s.n;
    const std::size_t j = at % s.n;
    double sum = what == form::added ? widen(in.before[at]) : 0.0f;
    double magnitude = std::abs(sum);
    for (std::size_t l = 0; l < s.k; ++l) {
      const double term = static_cast<double>(widen(in.x[i * s.k + l])) * widen(in.w[j * s.k + l]);
      sum += term;
      magnitude += std::abs(term);
    }
    const double error = std::abs(static_cast<double>(widen(y[at])) - sum);
    ASSERT_LE(error, rounding<A> * std::abs(sum) + sum_error * magnitude)
        << "row " << i << ", column " << j;
  }
}

class matmul_op : public op_on_device {};
INSTANTIATE_TEST_SUITE_P(devices, matmul_op, testing::ValuesIn(plain_devices()), device_case);

TEST_P(matmul_op, agrees_with_a_double_reference_at_every_shape) {
  each_pair([&]<class A, class W>(types<A, W>) {
    for (const shape& s : shapes) {
      SCOPED_TRACE(testing::Message() << s.m << ", " << s.n << ", " << s.k);
      const inputs<A, W> in{s, 1};
      for (const form what : {form::plain, form::added}) {
        expect_product(product(bench(), what, in.x, in.w, in.before, s), what, in, s);
      }
    }
  });
}

TEST_P(matmul_op, spans_at_odd_addresses_give_the_same_bits) {
  each_pair([&]<class A, class W>(types<A, W>) {
    for (const shape& s : shapes) {
      SCOPED_TRACE(testing::Message() << s.m << ", " << s.n << ", " << s.k);
      const inputs<A, W> in{s, 4};
      for (const form what : {form::plain, form::added}) {
        expect_same_bits(product(bench(), what, in.x, in.w, in.before, s, place::shifted),
                         product(bench(), what, in.x, in.w, in.before, s));
      }
    }
  });
}

// The last m rows of 64, so that a row meets every position and other neighbours.
template <class A, class W>
void expect_rows_alone(op_bench& bench, const shape& whole,
                       const std::vector<std::size_t>& counts) {
  const inputs<A, W> in{whole, 7};
  for (const form what : {form::plain, form::added}) {
    std::vector<A> alone;
    for (std::size_t row = 0; row < whole.m; ++row) {
      append(alone, product(bench, what, row_of(in.x, row, whole.k), in.w,
                            row_of(in.before, row, whole.n), {1, whole.n, whole.k}));
    }
    for (const std::size_t m : counts) {
      SCOPED_TRACE(testing::Message() << m << " rows, n " << whole.n << ", k " << whole.k);
      const std::size_t from = whole.m - m;
      expect_same_bits(product(bench, what, rows_from(in.x, from, whole.k), in.w,
                               rows_from(in.before, from, whole.n), {m, whole.n, whole.k}),
                       rows_from(alone, from, whole.n));
    }
  }
}

TEST_P(matmul_op, each_row_has_the_bits_it_has_alone) {
  std::vector<std::size_t> counts;
  for (std::size_t m = 1; m <= 64; ++m) counts.push_back(m);
  each_pair([&]<class A, class W>(types<A, W>) {
    expect_rows_alone<A, W>(bench(), {64, 48, 200}, counts);
    expect_rows_alone<A, W>(bench(), {64, 33, 63}, counts);
  });
}

TEST_P(matmul_op, each_row_of_a_wide_product_has_the_bits_it_has_alone) {
  each_pair([&]<class A, class W>(types<A, W>) {
    expect_rows_alone<A, W>(bench(), {34, 16400, 136}, {8, 9, 16, 17, 33});
    expect_rows_alone<A, W>(bench(), {34, 80, 2056}, {8, 9, 16, 17, 33});
  });
}

TEST_P(matmul_op, what_a_neighbour_holds_changes_nothing) {
  each_pair([&]<class A, class W>(types<A, W>) {
    for (const std::size_t m : {2, 5, 9, 20, 40}) {
      const shape s{m, 40, 100};
      inputs<A, W> in{s, 10};
      const auto before = product(bench(), form::plain, in.x, in.w, in.before, s);
      const std::size_t other = m / 2;
      for (std::size_t l = 0; l < s.k; ++l) {
        in.x[other * s.k + l] = narrow<A>(std::numeric_limits<float>::quiet_NaN());
      }
      const auto after = product(bench(), form::plain, in.x, in.w, in.before, s);
      for (std::size_t row = 0; row < m; ++row) {
        if (row == other) continue;
        expect_same_bits(row_of(after, row, s.n), row_of(before, row, s.n));
      }
    }
  });
}

TEST_P(matmul_op, refuses_sizes_that_do_not_fit) {
  const auto x = bench().put(random_values<float>(24, 11));
  const auto w = bench().put(random_values<float>(32, 12));
  const auto y = bench().room<float>(12);
  const auto run = [&](std::size_t left, std::size_t right, std::size_t to, std::int64_t n,
                       std::int64_t k) {
    launch(bench().on(), matmul<float, float>, read<float>{x.span().subview(0, left)},
           read<float>{w.span().subview(0, right)}, write<float>{y.span().subview(0, to)}, n, k);
  };
  EXPECT_NO_THROW(run(24, 32, 12, 4, 8));
  EXPECT_NO_THROW(run(0, 32, 0, 4, 8));
  EXPECT_THROW(run(23, 32, 12, 4, 8), usage_error);
  EXPECT_THROW(run(24, 31, 12, 4, 8), usage_error);
  EXPECT_THROW(run(24, 32, 11, 4, 8), usage_error);
  EXPECT_THROW(run(24, 32, 12, -4, 8), usage_error);
  EXPECT_THROW(run(24, 0, 12, 4, 0), usage_error);
}

// A body called directly, as `Rung` compiles it.
template <class Rung, class A, class W>
std::vector<A> by_rung(const inputs<A, W>& in, const shape& s, worker_ref workers) {
  std::vector<A> y = in.before;
  cpu_call call{{}, workers};
  ops::matmul_add_cpu<Rung>(call, read<A>{view<const A>{in.x.data(), in.x.size()}},
                            read<W>{view<const W>{in.w.data(), in.w.size()}},
                            inout<A>{view<A>{y.data(), y.size()}}, static_cast<std::int64_t>(s.n),
                            static_cast<std::int64_t>(s.k));
  return y;
}

TEST(matmul, the_cuts_between_threads_change_nothing) {
  each_pair([&]<class A, class W>(types<A, W>) {
    const shape s{130, 77, 800};
    const inputs<A, W> in{s, 13};
    expect_same_bits(by_rung<ops::generic_rung>(in, s, odd_pieces()),
                     by_rung<ops::generic_rung>(in, s, {}));
  });
}

#if defined(__x86_64__)
TEST(matmul, every_rung_gives_the_bits_of_generic) {
  each_pair([&]<class A, class W>(types<A, W>) {
    for (const shape& s : shapes) {
      SCOPED_TRACE(testing::Message() << s.m << ", " << s.n << ", " << s.k);
      const inputs<A, W> in{s, 14};
      const auto generic = by_rung<ops::generic_rung>(in, s, {});
      if (__builtin_cpu_supports("avx2")) {
        expect_same_bits(by_rung<ops::avx2_rung>(in, s, {}), generic);
      }
      if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
          __builtin_cpu_supports("avx512vl")) {
        expect_same_bits(by_rung<ops::avx512_rung>(in, s, {}), generic);
      }
    }
  });
}
#endif

TEST(matmul, cuda_is_near_the_cpu) {
  if (!gpu_or_skip()) GTEST_SKIP() << "no GPU answers";
  op_bench cpu{"cpu"};
  op_bench cuda{automatic_device()};
  each_pair([&]<class A, class W>(types<A, W>) {
    for (const shape& s : shapes) {
      SCOPED_TRACE(testing::Message() << s.m << ", " << s.n << ", " << s.k);
      const inputs<A, W> in{s, 15};
      for (const form what : {form::plain, form::added}) {
        const auto want = product(cpu, what, in.x, in.w, in.before, s);
        const auto got = product(cuda, what, in.x, in.w, in.before, s);
        // Each is rounded once, either way; terms are at most 4 in magnitude.
        const double floor = 2 * sum_error * (4.0 * static_cast<double>(s.k) + 2.0);
        for (std::size_t i = 0; i < want.size(); ++i) {
          const double error = std::abs(static_cast<double>(widen(got[i])) - widen(want[i]));
          ASSERT_LE(error, 2 * rounding<A> * std::abs(widen(want[i])) + floor) << "element " << i;
        }
      }
    }
  });
}

}  // namespace
}  // namespace reprise::test
