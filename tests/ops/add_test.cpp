#include "reprise/ops/add.hpp"

#include "tests/ops/bench.hpp"

namespace reprise::test {
namespace {

using floats = std::vector<float>;

floats plus(const floats& a, const floats& b) {
  floats out;
  for (std::size_t i = 0; i < a.size(); ++i) out.push_back(a[i] + b[i]);
  return out;
}

class add_op : public op_on_device {};
INSTANTIATE_TEST_SUITE_P(devices, add_op, testing::ValuesIn(plain_devices()), device_case);

TEST_P(add_op, adds_element_by_element_at_every_size) {
  for (const std::size_t size : {0U, 1U, 31U, 1000U, 100001U}) {
    for (const place where : {place::aligned, place::shifted}) {
      const auto a = random_values<float>(size, 1);
      const auto b = random_values<float>(size, 2);
      const auto as = bench().put(a, where);
      const auto bs = bench().put(b, where);
      const auto to = bench().room<float>(size, where);
      launch(bench().on(), add, read<float>{as.span()}, read<float>{bs.span()},
             write<float>{to.span()});
      expect_same_bits(bench().take(to), plus(a, b));
    }
  }
}

TEST_P(add_op, may_overwrite_either_or_add_a_span_to_itself) {
  const auto a = random_values<float>(1000, 3);
  const auto b = random_values<float>(1000, 4);
  for (const bool over_a : {true, false}) {
    const auto as = bench().put(a);
    const auto bs = bench().put(b);
    const auto& to = over_a ? as : bs;
    launch(bench().on(), add, read<float>{as.span()}, read<float>{bs.span()},
           write<float>{to.span()});
    expect_same_bits(bench().take(to), plus(a, b));
  }
  const auto as = bench().put(a);
  launch(bench().on(), add, read<float>{as.span()}, read<float>{as.span()},
         write<float>{as.span()});
  expect_same_bits(bench().take(as), plus(a, a));
}

TEST_P(add_op, refuses_sizes_that_differ) {
  const auto a = bench().put(floats(8));
  const auto run = [&](std::size_t b, std::size_t y) {
    launch(bench().on(), add, read<float>{a.span()}, read<float>{a.span().subview(0, b)},
           write<float>{a.span().subview(0, y)});
  };
  EXPECT_THROW(run(7, 8), usage_error);
  EXPECT_THROW(run(8, 7), usage_error);
}

}  // namespace
}  // namespace reprise::test
