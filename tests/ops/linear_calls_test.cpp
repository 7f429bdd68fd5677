// The layer's products as calls: which sizes are refused, and that neither the threads nor the rung
// that a call meets, nor when its rule is written, changes what it does.
#include <gtest/gtest.h>

#include <array>

#include "reprise/ops/lanes.hpp"
#include "reprise/ops/linear.hpp"
#include "tests/ops/bench.hpp"

namespace reprise::test {
namespace {

constexpr std::int64_t n = 4;
constexpr std::int64_t k = 8;
constexpr auto full = matrix_precision::full;

class linear_calls : public op_on_device {
 protected:
  view<float> floats(std::size_t count) const { return memory_.span().subview(0, count); }
  view<float> others(std::size_t count) const { return memory_.span().subview(64, count); }
  view<float> outputs(std::size_t count) const { return memory_.span().subview(128, count); }
  view<std::int32_t> words(std::size_t count) const { return words_.span().subview(0, count); }

  void forward(std::size_t x, std::size_t w, std::size_t bias, std::size_t y, std::int64_t of_n = n,
               std::int64_t of_k = k) {
    launch(bench().on(), linear<float>, read<float>{floats(x)}, read<float>{others(w)},
           read<float>{floats(bias)}, write<float>{outputs(y)}, of_n, of_k, full);
  }
  void input_grad(std::size_t dy, std::size_t w, std::size_t dx) {
    launch(bench().on(), linear_input_grad<float>, read<float>{floats(dy)}, read<float>{others(w)},
           write<float>{outputs(dx)}, n, k, full);
  }
  void weight_grad(std::size_t dy, std::size_t x, std::size_t dw, std::size_t rule) {
    launch(bench().on(), linear_weight_grad<float>, read<float>{floats(dy)}, read<float>{others(x)},
           inout<float>{outputs(dw)}, read<std::int32_t>{words(rule)}, n, k, full);
  }
  void bias_grad(std::size_t dy, std::size_t db, std::size_t rule, std::int64_t of_n = n) {
    launch(bench().on(), column_sum, read<float>{floats(dy)}, inout<float>{outputs(db)},
           read<std::int32_t>{words(rule)}, of_n);
  }

 private:
  guarded<float> memory_ = bench().put(random_values<float>(192, 1));
  guarded<std::int32_t> words_ = bench().put(std::vector<std::int32_t>(2));
};
INSTANTIATE_TEST_SUITE_P(devices, linear_calls, testing::ValuesIn(plain_devices()), device_case);

TEST_P(linear_calls, refuse_sizes_that_do_not_fit) {
  EXPECT_NO_THROW(forward(24, 32, 4, 12));
  EXPECT_NO_THROW(forward(24, 32, 0, 12)) << "no bias";
  EXPECT_NO_THROW(forward(0, 32, 4, 0)) << "no rows";
  EXPECT_THROW(forward(23, 32, 4, 12), usage_error);
  EXPECT_THROW(forward(16, 32, 4, 12), usage_error);
  EXPECT_THROW(forward(24, 31, 4, 12), usage_error);
  EXPECT_THROW(forward(24, 32, 3, 12), usage_error);
  EXPECT_THROW(forward(24, 32, 4, 11), usage_error);
  EXPECT_THROW(forward(0, 0, 0, 0, 0, 8), usage_error);
  EXPECT_THROW(forward(0, 0, 0, 0, 4, 0), usage_error);
  EXPECT_THROW(forward(24, 32, 0, 12, -4, 8), usage_error);

  EXPECT_NO_THROW(input_grad(12, 32, 24));
  EXPECT_THROW(input_grad(11, 32, 24), usage_error);
  EXPECT_THROW(input_grad(12, 28, 24), usage_error);
  EXPECT_THROW(input_grad(12, 32, 16), usage_error);

  EXPECT_NO_THROW(weight_grad(12, 24, 32, 1));
  EXPECT_NO_THROW(weight_grad(0, 0, 32, 1)) << "no rows";
  EXPECT_THROW(weight_grad(12, 16, 32, 1), usage_error);
  EXPECT_THROW(weight_grad(12, 24, 33, 1), usage_error);
  EXPECT_THROW(weight_grad(12, 24, 32, 0), usage_error);
  EXPECT_THROW(weight_grad(12, 24, 32, 2), usage_error);

  EXPECT_NO_THROW(bias_grad(12, 4, 1));
  EXPECT_THROW(bias_grad(10, 4, 1), usage_error);
  EXPECT_THROW(bias_grad(12, 3, 1), usage_error);
  EXPECT_THROW(bias_grad(12, 4, 0), usage_error);
  EXPECT_THROW(bias_grad(0, 0, 1, 0), usage_error);
  bench().on().synchronize();
}

TEST(linear_errors, are_one_line_with_the_op_the_argument_and_what_to_give) {
  op_bench bench{"cpu", 1};
  const auto values = bench.put(std::vector<float>(64));
  try {
    launch(bench.on(), linear_input_grad<float>, read<float>{values.span().subview(0, 12)},
           read<float>{values.span().subview(0, 30)}, write<float>{values.span().subview(40, 24)},
           n, k, full);
    FAIL() << "taken";
  } catch (const usage_error& refused) {
    EXPECT_STREQ(refused.what(), "linear_input_grad: w has 30 elements; give a view of 32");
  }
}

TEST(linear_errors, come_before_a_grid_that_no_card_has) {
  constexpr std::int64_t most = 4'194'240;  // 65,535 blocks of 64
  constexpr auto elements = static_cast<std::size_t>(most);
  EXPECT_EQ(ops::linear_rows(1, elements, 0, elements, most, 1), 1);
  EXPECT_EQ(ops::linear_weight_grad_rows(1, elements, elements, 1, 1, most), 1);
  EXPECT_THROW(ops::linear_input_grad_rows(1, elements + 1, elements + 1, 1, most + 1),
               usage_error);
  EXPECT_THROW(ops::linear_weight_grad_rows(1, elements + 1, elements + 1, 1, 1, most + 1),
               usage_error);
  try {
    ops::linear_rows(1, elements + 1, 0, elements + 1, most + 1, 1);
    FAIL() << "taken";
  } catch (const usage_error& refused) {
    EXPECT_STREQ(refused.what(),
                 "linear: n is 4194241, more than a grid of blocks covers; give 4194240 at most");
  }
}

class linear_rule : public op_on_device {};
INSTANTIATE_TEST_SUITE_P(devices, linear_rule, testing::ValuesIn(devices_under_test()),
                         device_case);

TEST_P(linear_rule, is_read_when_the_kernel_runs) {
  const auto dy = bench().put(random_values<float>(12, 2));
  const auto db = bench().put(std::vector<float>(4, 1.0f));
  const auto rule = bench().put(std::vector<std::int32_t>{2});
  const std::vector<std::int32_t> rules{2, 0, 1};
  std::vector<std::vector<float>> seen;
  for (const std::int32_t& says : rules) {
    copy(bench().on(), read<std::int32_t>{view<const std::int32_t>{&says, 1}},
         write<std::int32_t>{rule.span()});
    launch(bench().on(), column_sum, read<float>{dy.span()}, inout<float>{db.span()},
           read<std::int32_t>{rule.span()}, n);
    seen.push_back(bench().take(db));
  }
  expect_same_bits(seen[0], std::vector<float>(4, 1.0f));
  EXPECT_NE(seen[1], seen[0]);
  for (std::size_t j = 0; j < 4; ++j) EXPECT_EQ(seen[2][j], seen[1][j] + seen[1][j]) << j;
}

// All three bodies called directly, as `Rung` compiles them; what they wrote, one behind the other.
template <class Rung, class A>
std::vector<float> by_rung(std::size_t m, std::size_t wide, std::size_t deep,
                           matrix_precision precision, worker_ref workers) {
  const auto x = random_values<A>(m * deep, 3);
  const auto w = random_values<A>(wide * deep, 4);
  const auto dy = random_values<A>(m * wide, 5);
  const auto bias = random_values<float>(wide, 6);
  const std::vector<std::int32_t> rule{static_cast<std::int32_t>(gradient_rule::add)};
  std::vector<float> y(m * wide);
  std::vector<float> dx(m * deep);
  auto dw = random_values<float>(wide * deep, 7);
  const auto of = []<class T>(const std::vector<T>& values) {
    return read<T>{view<const T>{values.data(), values.size()}};
  };
  const auto to = [](std::vector<float>& values) { return view{values.data(), values.size()}; };
  const auto rows = static_cast<std::int64_t>(wide);
  const auto width = static_cast<std::int64_t>(deep);
  cpu_call call{{}, workers};
  ops::linear_cpu<Rung, A>(call, of(x), of(w), of(bias), write<float>{to(y)}, rows, width,
                           precision);
  ops::linear_input_grad_cpu<Rung, A>(call, of(dy), of(w), write<float>{to(dx)}, rows, width,
                                      precision);
  ops::linear_weight_grad_cpu<Rung, A>(call, of(dy), of(x), inout<float>{to(dw)}, of(rule), rows,
                                       width, precision);
  append(y, dx);
  append(y, dw);
  return y;
}

TEST(linear, the_cuts_between_threads_change_nothing) {
  expect_same_bits(by_rung<ops::generic_rung, float>(330, 200, 260, full, odd_pieces()),
                   by_rung<ops::generic_rung, float>(330, 200, 260, full, {}));
  const auto dy = random_values<float>(70 * 500, 8);
  const std::vector<std::int32_t> rule{0};
  std::vector<std::vector<float>> sums;
  for (const worker_ref& workers : {worker_ref{}, odd_pieces()}) {
    auto& db = sums.emplace_back(500);
    cpu_call call{{}, workers};
    ops::column_sum_cpu(call, read<float>{view<const float>{dy.data(), dy.size()}},
                        inout<float>{view<float>{db.data(), db.size()}},
                        read<std::int32_t>{view<const std::int32_t>{rule.data(), 1}}, 500);
  }
  expect_same_bits(sums[1], sums[0]);
}

#if defined(__x86_64__)
TEST(linear, every_rung_gives_the_bits_of_generic) {
  const auto check = []<class A>(types<A, A>, std::size_t m, std::size_t wide, std::size_t deep) {
    for (const auto precision : {full, matrix_precision::tf32}) {
      const auto generic = by_rung<ops::generic_rung, A>(m, wide, deep, precision, {});
      if (__builtin_cpu_supports("avx2")) {
        expect_same_bits(by_rung<ops::avx2_rung, A>(m, wide, deep, precision, {}), generic);
      }
      if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
          __builtin_cpu_supports("avx512vl")) {
        expect_same_bits(by_rung<ops::avx512_rung, A>(m, wide, deep, precision, {}), generic);
      }
    }
  };
  for (const auto& [m, wide, deep] : std::vector<std::array<std::size_t, 3>>{
           {1, 1, 1}, {3, 70, 33}, {64, 64, 64}, {67, 5, 200}, {130, 129, 17}}) {
    check(types<float, float>{}, m, wide, deep);
    check(types<bf16, bf16>{}, m, wide, deep);
  }
}
#endif

}  // namespace
}  // namespace reprise::test
