#include "reprise/ops/linear.hpp"

#include <array>
#include <limits>

#include "tests/ops/bench.hpp"

namespace reprise::test {
namespace {

struct sizes {
  std::size_t m, n, k;
};
// Both sides of a tile, of a part of a sum, and of what each of CUDA's tiles is chosen for.
const std::vector<sizes> shapes = {{0, 8, 8},     {1, 1, 1},     {1, 5, 7},      {3, 64, 65},
                                   {32, 48, 200}, {63, 130, 64}, {65, 33, 129},  {130, 1, 300},
                                   {257, 70, 1},  {500, 40, 36}, {300, 270, 31}, {1100, 17, 20},
                                   {64, 64, 64},  {128, 65, 63}, {1100, 970, 9}, {12, 1000, 8}};
// CUDA's large tiles, in the forward or in one of the gradients, and its middle ones in the others,
// each through more than two parts of a sum.
const std::vector<sizes> large_shapes = {
    {1100, 1040, 130}, {1040, 1040, 300}, {1040, 130, 1040}, {130, 1040, 1040}};

enum class product { forward, input_grad, weight_grad };
constexpr std::array products{product::forward, product::input_grad, product::weight_grad};
constexpr std::array precisions{matrix_precision::full, matrix_precision::tf32};

template <class A>
struct layer {
  layer(const sizes& of, std::uint64_t seed)
      : s{of},
        x{random_values<A>(s.m * s.k, seed)},
        w{random_values<A>(s.n * s.k, seed + 1)},
        dy{random_values<A>(s.m * s.n, seed + 2)},
        bias{random_values<float>(s.n, seed + 3)},
        old{random_values<float>(s.n * s.k, seed + 4)} {}

  // rows, columns and terms of a product
  sizes shape_of(product what) const {
    if (what == product::forward) return {s.m, s.n, s.k};
    if (what == product::input_grad) return {s.m, s.k, s.n};
    return {s.n, s.k, s.m};
  }
  A left(product what, std::size_t row, std::size_t term) const {
    if (what == product::forward) return x[row * s.k + term];
    return what == product::input_grad ? dy[row * s.n + term] : dy[term * s.n + row];
  }
  A right(product what, std::size_t column, std::size_t term) const {
    if (what == product::forward) return w[column * s.k + term];
    return what == product::input_grad ? w[term * s.k + column] : x[term * s.k + column];
  }

  sizes s;
  std::vector<A> x, w, dy;
  std::vector<float> bias, old;
};

std::vector<std::int32_t> word(gradient_rule rule) {
  return {static_cast<std::int32_t>(rule)};
}

template <class A>
std::vector<float> result(op_bench& bench, product what, const layer<A>& in,
                          matrix_precision precision, gradient_rule rule = gradient_rule::write,
                          place where = place::aligned) {
  const auto n = static_cast<std::int64_t>(in.s.n);
  const auto k = static_cast<std::int64_t>(in.s.k);
  const sizes shape = in.shape_of(what);
  const auto x = bench.put(in.x, where);
  const auto w = bench.put(in.w, where);
  const auto dy = bench.put(in.dy, where);
  if (what == product::weight_grad) {
    const auto says = bench.put(word(rule));
    const auto dw = bench.put(in.old, where);
    launch(bench.on(), linear_weight_grad<A>, read<A>{dy.span()}, read<A>{x.span()},
           inout<float>{dw.span()}, read<std::int32_t>{says.span()}, n, k, precision);
    return bench.take(dw);
  }
  const auto to = bench.template room<float>(shape.m * shape.n, where);
  if (what == product::forward) {
    const auto bias = bench.put(in.bias, where);
    launch(bench.on(), linear<A>, read<A>{x.span()}, read<A>{w.span()}, read<float>{bias.span()},
           write<float>{to.span()}, n, k, precision);
  } else {
    launch(bench.on(), linear_input_grad<A>, read<A>{dy.span()}, read<A>{w.span()},
           write<float>{to.span()}, n, k, precision);
  }
  return bench.take(to);
}

std::vector<float> columns(op_bench& bench, const std::vector<float>& dy,
                           const std::vector<float>& old, gradient_rule rule,
                           place where = place::aligned) {
  const auto from = bench.put(dy, where);
  const auto db = bench.put(old, where);
  const auto says = bench.put(word(rule));
  launch(bench.on(), column_sum, read<float>{from.span()}, inout<float>{db.span()},
         read<std::int32_t>{says.span()}, static_cast<std::int64_t>(old.size()));
  return bench.take(db);
}

template <class F>
void each_type(F&& check) {
  check(types<float, float>{});
  check(types<bf16, bf16>{});
}

template <class A>
float multiplied(A value, matrix_precision precision) {
  const float wide = widen(value);
  return std::is_same_v<A, float> && precision == matrix_precision::tf32 ? rounded_to_tf32(wide)
                                                                         : wide;
}

// What one f32 sum in any sensible order stays within, as a part of the sum of magnitudes.
constexpr double sum_error = 1e-6;

template <class A>
void expect_products(const std::vector<float>& got, product what, const layer<A>& in,
                     matrix_precision precision) {
  const auto [rows, across, terms] = in.shape_of(what);
  ASSERT_EQ(got.size(), rows * across);
  for (std::size_t at = 0; at < got.size(); ++at) {
    const std::size_t row = at / across;
    const std::size_t column = at % across;
    double sum = what == product::forward ? in.bias[column] : 0.0f;
    double magnitude = std::abs(sum);
    for (std::size_t l = 0; l < terms; ++l) {
      const double term = double{multiplied(in.left(what, row, l), precision)} *
                          double{multiplied(in.right(what, column, l), precision)};
      sum += term;
      magnitude += std::abs(term);
    }
    ASSERT_LE(std::abs(double{got[at]} - sum), sum_error * magnitude)
        << "row " << row << ", column " << column;
  }
}

// The header's order of a sum, in f32, each operation rounded on its own.
template <class Term>
float sum_in_parts(std::size_t terms, Term&& term) {
  float total = 0.0f;
  for (std::size_t begin = 0; begin < terms; begin += 64) {
    float sum = 0.0f;
    for (std::size_t l = begin; l < std::min(begin + 64, terms); ++l) sum += term(l);
    total += sum;
  }
  return total;
}

class linear_op : public op_on_device {};
INSTANTIATE_TEST_SUITE_P(devices, linear_op, testing::ValuesIn(plain_devices()), device_case);

TEST_P(linear_op, agrees_with_double_arithmetic_at_every_shape) {
  each_type([&]<class A, class W>(types<A, W>) {
    for (const sizes& s : shapes) {
      SCOPED_TRACE(testing::Message() << s.m << ", " << s.n << ", " << s.k);
      const layer<A> in{s, 1};
      for (const product what : products) {
        for (const auto precision : precisions) {
          expect_products(result(bench(), what, in, precision), what, in, precision);
        }
      }
    }
  });
}

TEST_P(linear_op, has_the_order_of_sums_that_the_header_says) {
  const auto check = [&]<class A>(const layer<A>& in, matrix_precision precision,
                                  std::size_t every = 1) {
    for (const product what : products) {
      const auto [rows, across, terms] = in.shape_of(what);
      const auto all = result(bench(), what, in, precision);
      std::vector<float> got;
      std::vector<float> want;
      for (std::size_t row = 0; row < rows; row += every) {
        append(got, row_of(all, row, across));
        for (std::size_t column = 0; column < across; ++column) {
          const float sum = sum_in_parts(terms, [&](std::size_t l) {
            return multiplied(in.left(what, row, l), precision) *
                   multiplied(in.right(what, column, l), precision);
          });
          want.push_back(what == product::forward ? sum + in.bias[column] : sum);
        }
      }
      expect_same_bits(got, want);
    }
  };
  for (const sizes& s : shapes) {
    SCOPED_TRACE(testing::Message() << s.m << ", " << s.n << ", " << s.k);
    check(layer<bf16>{s, 5}, matrix_precision::full);  // products are exact: fused or not
    check(layer<float>{s, 5}, matrix_precision::tf32);
    if (GetParam() == "cpu") check(layer<float>{s, 5}, matrix_precision::full);
  }
  constexpr std::size_t every = 13;  // row: comes to each row of a tile, in one tile or another
  for (const sizes& s : large_shapes) {
    SCOPED_TRACE(testing::Message() << s.m << ", " << s.n << ", " << s.k);
    check(layer<bf16>{s, 5}, matrix_precision::full, every);
    check(layer<float>{s, 5}, matrix_precision::tf32, every);
  }
}

TEST_P(linear_op, sums_columns_in_that_order_too) {
  for (const sizes& s : shapes) {
    const auto dy = random_values<float>(s.m * s.n, 9);
    const auto old = random_values<float>(s.n, 10);
    std::vector<float> want;
    for (std::size_t j = 0; j < s.n; ++j) {
      want.push_back(sum_in_parts(s.m, [&](std::size_t i) { return dy[i * s.n + j]; }));
    }
    expect_same_bits(columns(bench(), dy, old, gradient_rule::write), want);
    for (std::size_t j = 0; j < s.n; ++j) want[j] = old[j] + want[j];
    expect_same_bits(columns(bench(), dy, old, gradient_rule::add, place::shifted), want);
    expect_same_bits(columns(bench(), dy, old, gradient_rule::leave), old);
  }
}

TEST_P(linear_op, each_row_has_the_bits_it_has_alone) {
  each_type([&]<class A, class W>(types<A, W>) {
    for (const sizes& whole :
         std::vector<sizes>{{200, 33, 63}, {66, 130, 200}, {2000, 600, 5}, {1100, 1040, 200}}) {
      const layer<A> in{whole, 12};
      for (const product what : {product::forward, product::input_grad}) {
        const std::size_t width = in.shape_of(what).n;
        const auto together = result(bench(), what, in, matrix_precision::full);
        for (const std::size_t m : {1U, 2U, 17U, 33U, 65U}) {
          layer<A> few = in;
          few.s.m = m;
          few.x = rows_from(in.x, whole.m - m, whole.k);
          few.dy = rows_from(in.dy, whole.m - m, whole.n);
          expect_same_bits(result(bench(), what, few, matrix_precision::full),
                           rows_from(together, whole.m - m, width));
        }
      }
    }
  });
}

TEST_P(linear_op, a_gradient_of_a_weight_has_the_bits_it_has_in_a_layer_of_one) {
  const layer<float> in{{700, 20, 70}, 15};
  const auto together = result(bench(), product::weight_grad, in, matrix_precision::full);
  for (const std::size_t j : {0U, 7U, 19U}) {
    for (const std::size_t l : {0U, 33U, 69U}) {
      layer<float> one{{700, 1, 1}, 15};
      for (std::size_t i = 0; i < in.s.m; ++i) {
        one.dy[i] = in.dy[i * in.s.n + j];
        one.x[i] = in.x[i * in.s.k + l];
      }
      const auto alone = result(bench(), product::weight_grad, one, matrix_precision::full);
      EXPECT_TRUE(same_bits(alone[0], together[j * in.s.k + l])) << j << ", " << l;
    }
  }
}

TEST_P(linear_op, spans_at_odd_addresses_give_the_same_bits) {
  each_type([&]<class A, class W>(types<A, W>) {
    for (const sizes& s : shapes) {
      const layer<A> in{s, 18};
      for (const product what : products) {
        expect_same_bits(
            result(bench(), what, in, matrix_precision::full, gradient_rule::add, place::shifted),
            result(bench(), what, in, matrix_precision::full, gradient_rule::add));
      }
    }
  });
}

TEST_P(linear_op, adds_the_finished_sum_and_leaves_what_it_is_told_to) {
  each_type([&]<class A, class W>(types<A, W>) {
    for (const sizes& s : shapes) {
      const layer<A> in{s, 20};
      const auto grad = [&](gradient_rule rule) {
        return result(bench(), product::weight_grad, in, matrix_precision::full, rule);
      };
      const auto sum = grad(gradient_rule::write);
      std::vector<float> added;
      for (std::size_t i = 0; i < sum.size(); ++i) added.push_back(in.old[i] + sum[i]);
      expect_same_bits(grad(gradient_rule::add), added);
      expect_same_bits(grad(gradient_rule::leave), in.old);
      expect_same_bits(grad(gradient_rule{9}), in.old);
    }
  });
}

TEST_P(linear_op, writes_gradients_of_zero_where_there_are_no_rows) {
  layer<float> in{{0, 3, 5}, 22};
  const std::vector<float> zeros(15, 0.0f);
  expect_same_bits(result(bench(), product::weight_grad, in, matrix_precision::full), zeros);
  expect_same_bits(
      result(bench(), product::weight_grad, in, matrix_precision::full, gradient_rule::add),
      in.old);
  expect_same_bits(columns(bench(), {}, in.bias, gradient_rule::write), {0, 0, 0});
  expect_same_bits(columns(bench(), {}, in.bias, gradient_rule::add), in.bias);
}

TEST_P(linear_op, adds_the_bias_once_to_the_finished_sum) {
  const layer<float> in{{20, 70, 130}, 23};
  layer<float> none = in;
  none.bias.clear();
  const auto with = result(bench(), product::forward, in, matrix_precision::full);
  auto without = result(bench(), product::forward, none, matrix_precision::full);
  for (std::size_t at = 0; at < without.size(); ++at) without[at] += in.bias[at % in.s.n];
  expect_same_bits(with, without);
}

TEST_P(linear_op, tf32_is_a_full_product_of_operands_rounded_before) {
  const layer<float> in{{70, 40, 150}, 25};
  layer<float> rounded = in;
  for (auto* const values : {&rounded.x, &rounded.w, &rounded.dy}) {
    for (float& value : *values) value = rounded_to_tf32(value);
  }
  const layer<bf16> narrow{{70, 40, 150}, 25};
  for (const product what : products) {
    const auto got = result(bench(), what, in, matrix_precision::tf32);
    expect_same_bits(got, result(bench(), what, rounded, matrix_precision::full));
    EXPECT_NE(got, result(bench(), what, in, matrix_precision::full));
    expect_same_bits(result(bench(), what, narrow, matrix_precision::tf32),
                     result(bench(), what, narrow, matrix_precision::full));
  }
}

TEST_P(linear_op, what_a_neighbour_holds_changes_nothing) {
  layer<float> in{{40, 30, 70}, 28};
  const auto before = result(bench(), product::forward, in, matrix_precision::full);
  in.x[17 * in.s.k + 3] = std::numeric_limits<float>::infinity();
  const auto after = result(bench(), product::forward, in, matrix_precision::full);
  for (std::size_t row = 0; row < in.s.m; ++row) {
    if (row != 17) expect_same_bits(row_of(after, row, in.s.n), row_of(before, row, in.s.n));
  }
  EXPECT_FALSE(std::isfinite(after[17 * in.s.n]));
}

}  // namespace
}  // namespace reprise::test
