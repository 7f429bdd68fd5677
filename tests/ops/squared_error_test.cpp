#include "reprise/ops/squared_error.hpp"

#include "tests/ops/bench.hpp"
#include "tests/ops/reference.hpp"

namespace reprise::test {
namespace {

using floats = std::vector<float>;
using doubles = std::vector<double>;

float error_of(op_bench& bench, const floats& x, const floats& target,
               place where = place::aligned) {
  const auto xs = bench.put(x, where);
  const auto targets = bench.put(target, where);
  const auto loss = bench.room<float>(1, where);
  const lending_stream on{bench.on()};
  launch(on, squared_error, read<float>{xs.span()}, read<float>{targets.span()},
         write<float>{loss.span()});
  return bench.take(loss)[0];
}

floats slopes(op_bench& bench, const floats& x, const floats& target, float dloss) {
  const auto xs = bench.put(x);
  const auto targets = bench.put(target);
  const auto above = bench.put(floats{dloss});
  const auto dx = bench.room<float>(x.size());
  launch(bench.on(), squared_error_grad, read<float>{xs.span()}, read<float>{targets.span()},
         read<float>{above.span()}, write<float>{dx.span()});
  return bench.take(dx);
}

double reference(const doubles& x, const floats& target) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double off = x[i] - static_cast<double>(target[i]);
    sum += off * off;
  }
  return sum / static_cast<double>(x.size());
}

const std::vector<std::size_t> sizes{1, 3, 1023, 1024, 1025, 4095, 4096, 4097, 100003};

class squared_error_op : public op_on_device {};
INSTANTIATE_TEST_SUITE_P(devices, squared_error_op, testing::ValuesIn(plain_devices()),
                         device_case);

TEST_P(squared_error_op, agrees_with_a_double_reference_in_the_order_that_is_documented) {
  for (const std::size_t size : sizes) {
    SCOPED_TRACE(size);
    const auto x = random_values<float>(size, 1);
    const auto target = random_values<float>(size, 2);
    const float got = error_of(bench(), x, target);
    expect_near(floats{got}, {reference(wide(x), target)}, 1e-7);
    floats chunks;
    for (std::size_t first = 0; first < size; first += 4096) {
      floats squares;
      for (std::size_t i = first; i < std::min(first + 4096, size); ++i) {
        const float off = x[i] - target[i];
        squares.push_back(off * off);
      }
      chunks.push_back(in_slots(squares, 1024));
    }
    EXPECT_EQ(got, in_slots(chunks, 1024) / static_cast<float>(size));
    EXPECT_EQ(error_of(bench(), x, target, place::shifted), got);
  }
}

TEST_P(squared_error_op, of_nothing_is_zero) {
  EXPECT_TRUE(same_bits(error_of(bench(), {}, {}), 0.0F));
  EXPECT_TRUE(slopes(bench(), {}, {}, 1.0F).empty());
}

TEST_P(squared_error_op, of_what_is_no_number_is_none) {
  auto x = random_values<float>(5000, 3);
  x[4321] = std::nanf("");
  EXPECT_TRUE(std::isnan(error_of(bench(), x, floats(5000))));
}

TEST_P(squared_error_op, the_gradient_agrees_with_central_differences) {
  for (const std::size_t size : {1U, 7U, 300U}) {
    const auto x = random_values<float>(size, 4);
    const auto target = random_values<float>(size, 5);
    for (const float dloss : {1.0F, -0.25F}) {
      const auto expected = central_differences(
          [&](const doubles& at) { return static_cast<double>(dloss) * reference(at, target); },
          wide(x));
      expect_near(slopes(bench(), x, target, dloss), expected, 1e-7);
    }
  }
}

TEST_P(squared_error_op, the_gradient_may_overwrite_either) {
  const auto x = random_values<float>(1000, 6);
  const auto target = random_values<float>(1000, 7);
  for (const bool over_x : {true, false}) {
    const auto xs = bench().put(x);
    const auto targets = bench().put(target);
    const auto dloss = bench().put(floats{0.5F});
    const auto& to = over_x ? xs : targets;
    launch(bench().on(), squared_error_grad, read<float>{xs.span()}, read<float>{targets.span()},
           read<float>{dloss.span()}, write<float>{to.span()});
    expect_same_bits(bench().take(to), slopes(bench(), x, target, 0.5F));
  }
}

TEST_P(squared_error_op, refuses_sizes_that_do_not_fit) {
  const auto a = bench().put(floats(8));
  const auto in = [&](std::size_t count) { return read<float>{a.span().subview(0, count)}; };
  const auto out = [&](std::size_t count) { return write<float>{a.span().subview(0, count)}; };
  const lending_stream on{bench().on()};
  EXPECT_THROW(launch(on, squared_error, in(8), in(7), out(1)), usage_error);
  EXPECT_THROW(launch(on, squared_error, in(8), in(8), out(2)), usage_error);
  EXPECT_THROW(launch(on, squared_error_grad, in(8), in(7), in(1), out(8)), usage_error);
  EXPECT_THROW(launch(on, squared_error_grad, in(8), in(8), in(0), out(8)), usage_error);
  EXPECT_THROW(launch(on, squared_error_grad, in(8), in(8), in(1), out(7)), usage_error);
}

TEST(squared_error, the_cuts_between_threads_change_nothing) {
  const auto x = random_values<float>(100003, 8);
  const auto target = random_values<float>(100003, 9);
  float loss = -1;
  cpu_call call{{}, odd_pieces()};
  ops::squared_error_cpu(call, read<float>{view{x.data(), x.size()}},
                         read<float>{view{target.data(), target.size()}},
                         write<float>{view{&loss, 1}});
  op_bench bench{"cpu", 1};
  EXPECT_EQ(loss, error_of(bench, x, target));
}

}  // namespace
}  // namespace reprise::test
