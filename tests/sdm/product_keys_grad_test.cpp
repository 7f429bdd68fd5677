// What reaches the two halves of the gradient of the weights: central differences, with the choice
// as it is, and the order of its sums.
#include "tests/ops/reference.hpp"
#include "tests/sdm/product_keys.hpp"

namespace reprise::test {
namespace {

using doubles = std::vector<double>;

class product_keys_grad_op : public op_on_device {};
INSTANTIATE_TEST_SUITE_P(devices, product_keys_grad_op, testing::ValuesIn(plain_devices()),
                         device_case);

// sum of dval * val over all rows, for doubles in place of both halves; the choice stays.
double weighed(const keys_case& at, const choice& of, const floats& dval, const doubles& first,
               const doubles& second) {
  double all = 0;
  for (std::size_t row = 0; row < at.rows(); ++row) {
    double sum = 0;
    double weighted = 0;
    for (std::size_t l = row * at.k; l < (row + 1) * at.k; ++l) {
      const std::size_t slot = static_cast<std::size_t>(of.idx[l]) % (at.n * at.n);
      const double e = std::exp(first[row * at.n + slot / at.n] + second[row * at.n + slot % at.n]);
      sum += e;
      weighted += e * static_cast<double>(dval[l]);
    }
    all += weighted / sum;
  }
  return all;
}

TEST_P(product_keys_grad_op, have_the_gradients_of_central_differences) {
  struct shape {
    std::size_t n, k, rows;
  };
  for (const auto& [n, k, rows] :
       std::vector<shape>{{1, 1, 2}, {4, 16, 3}, {9, 20, 4}, {40, 64, 4}, {33, 128, 2}}) {
    SCOPED_TRACE(testing::Message() << k << " of " << n << " x " << n);
    const keys_case at = random_case(n, k, rows, 10, rows % 2 == 0 ? 2 : 1);
    const choice of = chosen(bench(), at);
    const floats dval = random_values<float>(rows * k, 11);
    const half_grads got = grads(bench(), n, k, of, dval);
    const doubles first = wide(at.first);
    const doubles second = wide(at.second);
    expect_near(got.first,
                central_differences(
                    [&](const doubles& v) { return weighed(at, of, dval, v, second); }, first),
                1e-6);
    expect_near(got.second,
                central_differences(
                    [&](const doubles& v) { return weighed(at, of, dval, first, v); }, second),
                1e-6);
  }
}

TEST_P(product_keys_grad_op, add_up_gradients_in_the_order_that_is_documented) {
  const std::size_t n = 6;
  const std::size_t k = 33;
  const keys_case at = random_case(n, k, 5, 12);
  const choice of = chosen(bench(), at);
  const floats dval = random_values<float>(5 * k, 13);
  const half_grads got = grads(bench(), n, k, of, dval, place::shifted);
  for (std::size_t row = 0; row < 5; ++row) {
    floats products;
    for (std::size_t l = row * k; l < (row + 1) * k; ++l) products.push_back(of.val[l] * dval[l]);
    const float along = in_slots(products, 32);
    floats first(n, 0.0F);
    floats second(n, 0.0F);
    for (std::size_t l = row * k; l < (row + 1) * k; ++l) {
      const float ds = of.val[l] * (dval[l] - along);
      first[static_cast<std::size_t>(of.idx[l]) / n] += ds;
      second[static_cast<std::size_t>(of.idx[l]) % n] += ds;
    }
    expect_same_bits(row_of(got.first, row, n), first);
    expect_same_bits(row_of(got.second, row, n), second);
  }
}

TEST_P(product_keys_grad_op, give_keys_of_no_chosen_slot_no_gradient) {
  const half_grads got = grads(bench(), 40, 2, {{3 * 40 + 7, 3 * 40 + 9}, {0.25F, 0.75F}}, {1, 2});
  for (std::size_t i = 0; i < 40; ++i) {
    EXPECT_EQ(got.first[i], 0.0F) << i;  // one key for both: a softmax moves with neither
    EXPECT_EQ(got.second[i], i == 7 ? -0.1875F : i == 9 ? 0.1875F : 0.0F) << i;
  }
}

TEST_P(product_keys_grad_op, add_an_index_below_zero_to_nothing) {
  const indices idx{-1, 5, std::numeric_limits<std::int32_t>::min(), 8};
  const floats val{0.25F, 0.25F, 0.25F, 0.25F};
  const half_grads got = grads(bench(), 3, 4, {idx, val}, {1, 2, 3, 6});
  expect_same_bits(got.first, {0.0F, -0.25F, 0.75F});
  expect_same_bits(got.second, {0.0F, 0.0F, -0.25F + 0.75F});
}

}  // namespace
}  // namespace reprise::test
