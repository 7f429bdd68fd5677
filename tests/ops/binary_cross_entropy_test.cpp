#include "reprise/ops/binary_cross_entropy.hpp"

#include "reprise/ops/log1p.hpp"
#include "reprise/ops/math.hpp"
#include "tests/ops/bench.hpp"
#include "tests/ops/reference.hpp"

namespace reprise::test {
namespace {

using floats = std::vector<float>;
using doubles = std::vector<double>;

float loss_of(op_bench& bench, const floats& logits, const floats& targets,
              place where = place::aligned) {
  const auto x = bench.put(logits, where);
  const auto t = bench.put(targets, where);
  const auto loss = bench.room<float>(1, where);
  const lending_stream on{bench.on()};
  launch(on, binary_cross_entropy, read<float>{x.span()}, read<float>{t.span()},
         write<float>{loss.span()});
  return bench.take(loss)[0];
}

floats slopes(op_bench& bench, const floats& logits, const floats& targets, float dloss,
              place where = place::aligned) {
  const auto x = bench.put(logits, where);
  const auto t = bench.put(targets, where);
  const auto above = bench.put(floats{dloss});
  const auto dx = bench.room<float>(logits.size(), where);
  launch(bench.on(), binary_cross_entropy_grad, read<float>{x.span()}, read<float>{t.span()},
         read<float>{above.span()}, write<float>{dx.span()});
  return bench.take(dx);
}

floats target_slopes(op_bench& bench, const floats& logits, float dloss,
                     place where = place::aligned) {
  const auto x = bench.put(logits, where);
  const auto above = bench.put(floats{dloss});
  const auto dt = bench.room<float>(logits.size(), where);
  launch(bench.on(), binary_cross_entropy_target_grad, read<float>{x.span()},
         read<float>{above.span()}, write<float>{dt.span()});
  return bench.take(dt);
}

floats shares(std::size_t count, std::uint64_t seed) {
  floats all = random_values<float>(count, seed, 1.0F);
  for (float& one : all) one = std::abs(one);
  return all;
}

double reference(const doubles& x, const doubles& t) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    sum += std::max(x[i], 0.0) - x[i] * t[i] + std::log1p(std::exp(-std::abs(x[i])));
  }
  return sum / static_cast<double>(x.size());
}

class binary_cross_entropy_op : public op_on_device {};
INSTANTIATE_TEST_SUITE_P(devices, binary_cross_entropy_op, testing::ValuesIn(plain_devices()),
                         device_case);

// The terms have the elementary functions of math.hpp, whose tests hold them to their values; what
// is written out here is which of them, and the order of the sum.
TEST_P(binary_cross_entropy_op, agrees_with_double_in_the_order_that_is_documented) {
  for (const std::size_t size : {1U, 3U, 1023U, 1024U, 1025U, 4095U, 4096U, 4097U, 50003U}) {
    SCOPED_TRACE(size);
    const auto logits = random_values<float>(size, 1, 12.0F);
    const auto targets = shares(size, 2);
    const float got = loss_of(bench(), logits, targets);
    expect_near(floats{got}, {reference(wide(logits), wide(targets))}, 1e-7);
    floats chunks;
    for (std::size_t first = 0; first < size; first += 4096) {
      floats terms;
      for (std::size_t i = first; i < std::min(first + 4096, size); ++i) {
        const float product = logits[i] * targets[i];
        const float upper = std::max(logits[i], 0.0F) - product;
        const float e = math::exp(-std::abs(logits[i]));
        const float u = 1.0F + e;
        const float rest = u == 1.0F ? e : math::log(u) * (e / (u - 1.0F));
        terms.push_back(upper + rest);
      }
      chunks.push_back(in_slots(terms, 1024));
    }
    EXPECT_EQ(got, in_slots(chunks, 1024) / static_cast<float>(size));
    EXPECT_EQ(loss_of(bench(), logits, targets, place::shifted), got);
  }
}

// A probability near 0 or 1 keeps its digits: nothing is 1 - (1 - p) here.
TEST_P(binary_cross_entropy_op, of_logits_that_are_sure_is_what_they_lose) {
  for (const float x : {0.0F, 1e-4F, 5.0F, 20.0F, 80.0F, 90.0F, 1000.0F}) {
    for (const float sign : {1.0F, -1.0F}) {
      for (const float t : {0.0F, 1.0F}) {
        const float logit = sign * x;
        const double want = reference({static_cast<double>(logit)}, {static_cast<double>(t)});
        const float got = loss_of(bench(), {logit}, {t});
        EXPECT_NEAR(static_cast<double>(got), want, 1e-6 * want + 1.2e-38) << logit << " " << t;
      }
    }
  }
}

TEST_P(binary_cross_entropy_op, of_nothing_is_zero_and_of_no_number_is_none) {
  EXPECT_TRUE(same_bits(loss_of(bench(), {}, {}), 0.0F));
  EXPECT_TRUE(slopes(bench(), {}, {}, 1.0F).empty());
  EXPECT_TRUE(target_slopes(bench(), {}, 1.0F).empty());
  auto logits = random_values<float>(5000, 3);
  logits[4321] = std::nanf("");
  EXPECT_TRUE(std::isnan(loss_of(bench(), logits, floats(5000))));
  EXPECT_TRUE(std::isnan(slopes(bench(), logits, floats(5000), 1.0F)[4321]));
}

TEST_P(binary_cross_entropy_op, gradients_agree_with_central_differences) {
  for (const std::size_t size : {1U, 7U, 40U, 300U}) {
    const auto logits = random_values<float>(size, 4, 6.0F);
    const auto targets = shares(size, 5);
    const doubles x = wide(logits);
    const doubles t = wide(targets);
    for (const float dloss : {1.0F, -0.25F, 1024.0F}) {
      const auto scaled = [&](double of) { return static_cast<double>(dloss) * of; };
      expect_near(
          slopes(bench(), logits, targets, dloss),
          central_differences([&](const doubles& at) { return scaled(reference(at, t)); }, x),
          2e-7 * std::abs(static_cast<double>(dloss)));
      expect_near(
          target_slopes(bench(), logits, dloss),
          central_differences([&](const doubles& at) { return scaled(reference(x, at)); }, t),
          2e-7 * std::abs(static_cast<double>(dloss)));
    }
  }
}

// Of as many elements, an element has the bits it has anywhere else.
TEST_P(binary_cross_entropy_op, gradients_are_of_one_element_alone) {
  const auto logits = random_values<float>(1000, 6, 6.0F);
  const auto targets = shares(1000, 7);
  const floats together = slopes(bench(), logits, targets, 0.7F);
  expect_same_bits(slopes(bench(), logits, targets, 0.7F, place::shifted), together);
  const floats of_targets = target_slopes(bench(), logits, 0.7F);
  expect_same_bits(target_slopes(bench(), logits, 0.7F, place::shifted), of_targets);
  const auto reversed = [](floats all) {
    std::reverse(all.begin(), all.end());
    return all;
  };
  expect_same_bits(reversed(slopes(bench(), reversed(logits), reversed(targets), 0.7F)), together);
  expect_same_bits(reversed(target_slopes(bench(), reversed(logits), 0.7F)), of_targets);
}

TEST_P(binary_cross_entropy_op, gradients_may_overwrite_what_they_are_of) {
  const auto logits = random_values<float>(1000, 8);
  const auto targets = shares(1000, 9);
  const auto dloss = bench().put(floats{0.5F});
  for (const bool over_logits : {true, false}) {
    const auto x = bench().put(logits);
    const auto t = bench().put(targets);
    const auto& to = over_logits ? x : t;
    launch(bench().on(), binary_cross_entropy_grad, read<float>{x.span()}, read<float>{t.span()},
           read<float>{dloss.span()}, write<float>{to.span()});
    expect_same_bits(bench().take(to), slopes(bench(), logits, targets, 0.5F));
  }
  const auto x = bench().put(logits);
  launch(bench().on(), binary_cross_entropy_target_grad, read<float>{x.span()},
         read<float>{dloss.span()}, write<float>{x.span()});
  expect_same_bits(bench().take(x), target_slopes(bench(), logits, 0.5F));
}

TEST_P(binary_cross_entropy_op, refuses_sizes_that_do_not_fit) {
  const auto a = bench().put(floats(8));
  const auto in = [&](std::size_t count) { return read<float>{a.span().subview(0, count)}; };
  const auto out = [&](std::size_t count) { return write<float>{a.span().subview(0, count)}; };
  const lending_stream on{bench().on()};
  EXPECT_THROW(launch(on, binary_cross_entropy, in(8), in(7), out(1)), usage_error);
  EXPECT_THROW(launch(on, binary_cross_entropy, in(8), in(8), out(2)), usage_error);
  EXPECT_THROW(launch(on, binary_cross_entropy_grad, in(8), in(7), in(1), out(8)), usage_error);
  EXPECT_THROW(launch(on, binary_cross_entropy_grad, in(8), in(8), in(0), out(8)), usage_error);
  EXPECT_THROW(launch(on, binary_cross_entropy_grad, in(8), in(8), in(1), out(7)), usage_error);
  EXPECT_THROW(launch(on, binary_cross_entropy_target_grad, in(8), in(2), out(8)), usage_error);
  EXPECT_THROW(launch(on, binary_cross_entropy_target_grad, in(8), in(1), out(7)), usage_error);
}

TEST(binary_cross_entropy, the_cuts_between_threads_change_nothing) {
  const auto logits = random_values<float>(50003, 10);
  const auto targets = shares(50003, 11);
  const auto in = [](const floats& from) { return read<float>{view{from.data(), from.size()}}; };
  cpu_call call{{}, odd_pieces()};
  float loss = -1;
  ops::binary_cross_entropy_cpu(call, in(logits), in(targets), write<float>{view{&loss, 1}});
  op_bench bench{"cpu", 1};
  EXPECT_EQ(loss, loss_of(bench, logits, targets));
  floats dx(logits.size());
  ops::binary_cross_entropy_grad_cpu(call, in(logits), in(targets), in({0.5F}),
                                     write<float>{view{dx.data(), dx.size()}});
  expect_same_bits(dx, slopes(bench, logits, targets, 0.5F));
}

TEST(log1p, is_within_three_roundings_of_its_value) {
  for (std::uint32_t bits = 0; bits <= 0x3f800000U; bits += 4099) {
    const auto e = __builtin_bit_cast(float, bits);
    const double want = std::log1p(static_cast<double>(e));
    ASSERT_NEAR(static_cast<double>(ops::log1p_of(e)), want, 0x1.8p-23 * want + 0x1p-149) << e;
  }
  EXPECT_EQ(ops::log1p_of(0.0F), 0.0F);
  EXPECT_TRUE(std::isnan(ops::log1p_of(std::nanf(""))));
}

}  // namespace
}  // namespace reprise::test
