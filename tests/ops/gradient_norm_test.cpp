#include "reprise/ops/gradient_norm.hpp"

#include <limits>

#include "tests/ops/bench.hpp"
#include "tests/ops/reference.hpp"

namespace reprise::test {
namespace {

using floats = std::vector<float>;
using doubles = std::vector<double>;

constexpr float infinity = std::numeric_limits<float>::infinity();

double squares_of(op_bench& bench, float scale, const floats& grad, double before,
                  gradient_rule rule, place where = place::aligned) {
  const auto words = bench.put(floats{scale, 0.0F});
  const auto from = bench.put(grad, where);
  guarded<double> squares = bench.put(doubles{before});
  const lending_stream on{bench.on()};
  launch(on, gradient_squares, read<float>{words.span()}, read<float>{from.span()},
         inout<double>{squares.span()}, rule);
  return bench.take(squares)[0];
}
double squares_of(op_bench& bench, float scale, const floats& grad) {
  return squares_of(bench, scale, grad, std::nan(""), gradient_rule::write);
}

floats facts_of(op_bench& bench, double squares, float most) {
  const auto words = bench.put(floats{1.0F, most});
  guarded<double> from = bench.put(doubles{squares});
  const auto facts = bench.room<float>(3);
  launch(bench.on(), gradient_norm, read<float>{words.span()}, read<double>{from.span()},
         write<float>{facts.span()});
  return bench.take(facts);
}

floats scaled(op_bench& bench, float scale, const floats& facts, const floats& grad,
              place where = place::aligned) {
  const auto words = bench.put(floats{scale, 0.0F});
  const auto by = bench.put(facts);
  const auto at = bench.put(grad, where);
  launch(bench.on(), scale_gradients, read<float>{words.span()}, read<float>{by.span()},
         inout<float>{at.span()});
  return bench.take(at);
}

// in_slots of reference.hpp, in double.
double in_double_slots(const doubles& terms) {
  doubles sums(1024, 0.0);
  for (std::size_t l = 0; l < terms.size(); ++l) sums[l % 1024] += terms[l];
  for (std::size_t half = 512; half > 0; half /= 2) {
    for (std::size_t s = 0; s < half; ++s) sums[s] += sums[s + half];
  }
  return sums[0];
}

class gradient_norm_op : public op_on_device {};
INSTANTIATE_TEST_SUITE_P(devices, gradient_norm_op, testing::ValuesIn(plain_devices()),
                         device_case);

TEST_P(gradient_norm_op, sums_squares_in_double_in_the_order_that_is_documented) {
  for (const std::size_t size : {0U, 1U, 1023U, 1025U, 4096U, 4097U, 100003U}) {
    SCOPED_TRACE(size);
    const auto grad = random_values<float>(size, 1, 300.0F);
    for (const float scale : {1.0F, 1024.0F, 3.0F}) {
      doubles chunks;
      for (std::size_t first = 0; first < size; first += 4096) {
        doubles squares;
        for (std::size_t i = first; i < std::min(first + 4096, size); ++i) {
          const float g = grad[i] / scale;
          squares.push_back(static_cast<double>(g) * static_cast<double>(g));
        }
        chunks.push_back(in_double_slots(squares));
      }
      const double want = in_double_slots(chunks);
      EXPECT_EQ(squares_of(bench(), scale, grad), want);
      EXPECT_EQ(squares_of(bench(), scale, grad, 0.1, gradient_rule::write, place::shifted), want);
      EXPECT_EQ(squares_of(bench(), scale, grad, 0.1, gradient_rule::add), 0.1 + want);
    }
  }
}

TEST_P(gradient_norm_op, the_norm_is_the_root_and_says_what_is_finite) {
  for (const double sum : {0.0, 1e-80, 0.25, 2.0, 1e12, 1e70}) {
    const floats facts = facts_of(bench(), sum, 0.0F);
    EXPECT_EQ(facts[0], static_cast<float>(std::sqrt(sum)));
    EXPECT_EQ(facts[1], 1.0F);
    EXPECT_EQ(facts[2], 1.0F);
  }
  for (const float most : {0.0F, 1.0F}) {
    const floats infinite = facts_of(bench(), std::numeric_limits<double>::infinity(), most);
    EXPECT_EQ(infinite, (floats{infinity, 0.0F, 1.0F}));
    const floats none = facts_of(bench(), std::nan(""), most);
    EXPECT_TRUE(std::isnan(none[0]));
    EXPECT_EQ(none[1], 0.0F);
    EXPECT_EQ(none[2], 1.0F);
  }
}

// The square of the largest number that f32 has is no overflow.
TEST_P(gradient_norm_op, one_element_that_is_not_finite_is_seen_and_large_ones_are_finite) {
  constexpr float largest = std::numeric_limits<float>::max();
  for (const std::size_t at : {0U, 4095U, 4096U, 9999U}) {
    floats grad(10000, largest);
    EXPECT_TRUE(std::isfinite(squares_of(bench(), 1.0F, grad)));
    EXPECT_TRUE(std::isinf(squares_of(bench(), 0.5F, grad))) << "unscaled it is infinite";
    for (const float bad : {infinity, -infinity, std::nanf("")}) {
      grad[at] = bad;
      EXPECT_FALSE(std::isfinite(squares_of(bench(), 1.0F, grad)));
      EXPECT_FALSE(std::isfinite(squares_of(bench(), 65536.0F, grad)));
    }
  }
}

TEST_P(gradient_norm_op, the_factor_shortens_and_never_lengthens) {
  for (const float most : {0.5F, 1.0F, 100.0F}) {
    for (const double norm : {0.0, 0.1, 0.5, 1.0, 7.0, 1e6}) {
      const auto f32 = static_cast<float>(norm);
      const float above = f32 + 1e-6F;
      EXPECT_EQ(facts_of(bench(), norm * norm, most)[2], std::min(1.0F, most / above))
          << norm << " at most " << most;
    }
  }
}

TEST_P(gradient_norm_op, scaling_rounds_each_operation_as_documented) {
  for (const std::size_t size : {0U, 1U, 31U, 70001U}) {
    const auto grad = random_values<float>(size, 2, 5000.0F);
    for (const auto& [scale, factor] :
         {std::pair{1024.0F, 0.3F}, {3.0F, 1.0F}, {1.0F, 0.7F}, {65536.0F, 1.0F}}) {
      floats want;
      for (const float one : grad) {
        const float g = one / scale;
        want.push_back(g * factor);
      }
      expect_same_bits(scaled(bench(), scale, {9.0F, 1.0F, factor}, grad), want);
      expect_same_bits(scaled(bench(), scale, {9.0F, 1.0F, factor}, grad, place::shifted), want);
    }
    expect_same_bits(scaled(bench(), 1.0F, {9.0F, 1.0F, 1.0F}, grad), grad);
  }
}

TEST_P(gradient_norm_op, gradients_that_are_not_finite_are_left_as_they_are) {
  auto grad = random_values<float>(5000, 3);
  grad[77] = infinity;
  expect_same_bits(scaled(bench(), 1024.0F, {infinity, 0.0F, 1.0F}, grad), grad);
}

TEST_P(gradient_norm_op, refuses_sizes_that_do_not_fit) {
  const auto a = bench().put(floats(8));
  guarded<double> d = bench().put(doubles(2));
  const auto in = [&](std::size_t count) { return read<float>{a.span().subview(0, count)}; };
  const auto squares = [&](std::size_t count) { return d.span().subview(0, count); };
  const lending_stream on{bench().on()};
  EXPECT_THROW(
      launch(on, gradient_squares, in(1), in(8), inout<double>{squares(1)}, gradient_rule::write),
      usage_error);
  EXPECT_THROW(
      launch(on, gradient_squares, in(2), in(8), inout<double>{squares(2)}, gradient_rule::write),
      usage_error);
  const auto to = [&](std::size_t count) { return write<float>{a.span().subview(0, count)}; };
  EXPECT_THROW(launch(on, gradient_norm, in(3), read<double>{squares(1)}, to(3)), usage_error);
  EXPECT_THROW(launch(on, gradient_norm, in(2), read<double>{squares(2)}, to(3)), usage_error);
  EXPECT_THROW(launch(on, gradient_norm, in(2), read<double>{squares(1)}, to(2)), usage_error);
  const auto at = [&](std::size_t count) { return inout<float>{a.span().subview(0, count)}; };
  EXPECT_THROW(launch(on, scale_gradients, in(1), in(3), at(8)), usage_error);
  EXPECT_THROW(launch(on, scale_gradients, in(2), in(2), at(8)), usage_error);
}

TEST(gradient_norm, the_cuts_between_threads_change_nothing) {
  const auto grad = random_values<float>(100003, 4);
  const floats words{3.0F, 0.0F};
  const auto in = [](const floats& from) { return read<float>{view{from.data(), from.size()}}; };
  cpu_call call{{}, odd_pieces()};
  double squares = 0;
  ops::gradient_squares_cpu(call, in(words), in(grad), inout<double>{view{&squares, 1}},
                            gradient_rule::write);
  op_bench bench{"cpu", 1};
  EXPECT_EQ(squares, squares_of(bench, 3.0F, grad));
  floats got = grad;
  const floats facts{1.0F, 1.0F, 0.25F};
  ops::scale_gradients_cpu(call, in(words), in(facts), inout<float>{view{got.data(), got.size()}});
  expect_same_bits(got, scaled(bench, 3.0F, facts, grad));
}

}  // namespace
}  // namespace reprise::test
