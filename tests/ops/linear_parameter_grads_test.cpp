// The gradients of a product's weights and of its bias in one kernel have the bits of the two that
// it stands for, each by its own rule.
#include "reprise/ops/linear.hpp"
#include "tests/ops/bench.hpp"

namespace reprise::test {
namespace {

using floats = std::vector<float>;

struct rules {
  gradient_rule weight = gradient_rule::write;
  gradient_rule bias = gradient_rule::write;
};

struct product_case {
  std::int64_t n, k;
  floats dy, x, dw, db;  // the last two are what is there before

  product_case(std::int64_t rows, std::int64_t wide, std::int64_t deep)
      : n{wide},
        k{deep},
        dy{random_values<float>(static_cast<std::size_t>(rows * wide), 1)},
        x{random_values<float>(static_cast<std::size_t>(rows * deep), 2)},
        dw{random_values<float>(static_cast<std::size_t>(wide * deep), 3)},
        db{random_values<float>(static_cast<std::size_t>(wide), 4)} {}
};

struct gradients_of {
  floats dw, db;
};

std::vector<std::int32_t> word_of(gradient_rule rule) {
  return {static_cast<std::int32_t>(rule)};
}

gradients_of run(op_bench& bench, const product_case& at, bool as_one, const rules& by,
                 matrix_precision precision, place where = place::aligned) {
  const auto dy = bench.put(at.dy, where);
  const auto x = bench.put(at.x, where);
  const auto dw = bench.put(at.dw, where);
  const auto db = bench.put(at.db, where);
  const auto rule = bench.put(word_of(by.weight));
  const auto bias_rule = bench.put(word_of(by.bias));
  const read<float> above{dy.span()};
  const read<float> from{x.span()};
  const inout<float> weight{dw.span()};
  const inout<float> bias{db.span()};
  const read<std::int32_t> for_weight{rule.span()};
  const read<std::int32_t> for_bias{bias_rule.span()};
  if (as_one) {
    launch(bench.on(), linear_parameter_grads, above, from, weight, bias, for_weight, for_bias,
           at.n, at.k, precision);
  } else {
    launch(bench.on(), linear_weight_grad<float>, above, from, weight, for_weight, at.n, at.k,
           precision);
    launch(bench.on(), column_sum, above, bias, for_bias, at.n);
  }
  return {bench.take(dw), bench.take(db)};
}

class linear_parameter_grads_op : public op_on_device {};
INSTANTIATE_TEST_SUITE_P(devices, linear_parameter_grads_op, testing::ValuesIn(plain_devices()),
                         device_case);

TEST_P(linear_parameter_grads_op, have_the_bits_of_the_two_kernels) {
  const std::vector<gradient_rule> all{gradient_rule::write, gradient_rule::add,
                                       gradient_rule::leave};
  for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{{0, 5, 3},
                                                                        {1, 1, 1},
                                                                        {5, 9, 7},
                                                                        {32, 256, 256},
                                                                        {63, 17, 40},
                                                                        {65, 33, 18},
                                                                        {128, 20, 16},
                                                                        {129, 20, 16},
                                                                        {40, 700, 300}}) {
    SCOPED_TRACE(testing::Message() << m << " rows, " << n << " by " << k);
    const product_case at{m, n, k};
    for (const auto precision : {matrix_precision::full, matrix_precision::tf32}) {
      for (const gradient_rule weight : all) {
        for (const gradient_rule bias : all) {
          const gradients_of got = run(bench(), at, true, {weight, bias}, precision);
          const gradients_of expected = run(bench(), at, false, {weight, bias}, precision);
          expect_same_bits(got.dw, expected.dw);
          expect_same_bits(got.db, expected.db);
        }
      }
    }
  }
}

TEST_P(linear_parameter_grads_op, have_them_wherever_their_operands_lie) {
  const product_case at{32, 50, 70};
  const gradients_of got = run(bench(), at, true, {}, matrix_precision::full, place::shifted);
  const gradients_of expected = run(bench(), at, false, {}, matrix_precision::full);
  expect_same_bits(got.dw, expected.dw);
  expect_same_bits(got.db, expected.db);
}

TEST_P(linear_parameter_grads_op, refuse_sizes_that_do_not_fit) {
  const product_case at{4, 3, 2};
  product_case narrow = at;
  narrow.db.resize(2);
  EXPECT_THROW(run(bench(), narrow, true, {}, matrix_precision::full), usage_error);
  product_case short_x = at;
  short_x.x.resize(7);
  EXPECT_THROW(run(bench(), short_x, true, {}, matrix_precision::full), usage_error);
}

}  // namespace
}  // namespace reprise::test
