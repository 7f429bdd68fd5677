#include "reprise/ops/multiply_by.hpp"

#include "tests/ops/bench.hpp"

namespace reprise::test {
namespace {

using floats = std::vector<float>;

floats times(const floats& x, float factor) {
  floats out;
  for (const float one : x) out.push_back(factor * one);
  return out;
}

class multiply_by_op : public op_on_device {};
INSTANTIATE_TEST_SUITE_P(devices, multiply_by_op, testing::ValuesIn(plain_devices()), device_case);

TEST_P(multiply_by_op, multiplies_element_by_element_at_every_size) {
  for (const std::size_t size : {0U, 1U, 31U, 1000U, 100001U}) {
    for (const place where : {place::aligned, place::shifted}) {
      for (const float factor : {0.3F, -2.0F, 0.0F}) {
        const auto x = random_values<float>(size, 1);
        const auto xs = bench().put(x, where);
        const auto to = bench().room<float>(size, where);
        launch(bench().on(), multiply_by, read<float>{xs.span()}, write<float>{to.span()}, factor);
        expect_same_bits(bench().take(to), times(x, factor));
      }
    }
  }
}

TEST_P(multiply_by_op, may_overwrite_what_it_multiplies) {
  const auto x = random_values<float>(1000, 3);
  const auto xs = bench().put(x);
  launch(bench().on(), multiply_by, read<float>{xs.span()}, write<float>{xs.span()}, 0.7F);
  expect_same_bits(bench().take(xs), times(x, 0.7F));
}

TEST_P(multiply_by_op, refuses_sizes_that_differ) {
  const auto x = bench().put(floats(8));
  EXPECT_THROW(launch(bench().on(), multiply_by, read<float>{x.span()},
                      write<float>{x.span().subview(0, 7)}, 1.0F),
               usage_error);
}

}  // namespace
}  // namespace reprise::test
