#include "reprise/ops/softmax_cross_entropy.hpp"

#include <limits>

#include "tests/ops/bench.hpp"
#include "tests/ops/reference.hpp"

namespace reprise::test {
namespace {

using floats = std::vector<float>;
using doubles = std::vector<double>;
using classes_of = std::vector<std::int32_t>;

constexpr float infinity = std::numeric_limits<float>::infinity();

struct loss_and_count {
  float loss, counted;
};

loss_and_count entropy(op_bench& bench, const floats& logits, const classes_of& targets,
                       std::int64_t classes, place where = place::aligned) {
  const auto x = bench.put(logits, where);
  const auto t = bench.put(targets, where);
  const auto loss = bench.room<float>(1);
  const auto counted = bench.room<float>(1);
  const lending_stream on{bench.on()};
  launch(on, softmax_cross_entropy, read<float>{x.span()}, read<std::int32_t>{t.span()},
         write<float>{loss.span()}, write<float>{counted.span()}, classes);
  return {bench.take(loss)[0], bench.take(counted)[0]};
}

floats slopes(op_bench& bench, const floats& logits, const classes_of& targets, float counted,
              float dloss, std::int64_t classes, place where = place::aligned) {
  const auto x = bench.put(logits, where);
  const auto t = bench.put(targets, where);
  const auto rows = bench.put(floats{counted});
  const auto above = bench.put(floats{dloss});
  const auto dx = bench.room<float>(logits.size(), where);
  launch(bench.on(), softmax_cross_entropy_grad, read<float>{x.span()},
         read<std::int32_t>{t.span()}, read<float>{rows.span()}, read<float>{above.span()},
         write<float>{dx.span()}, classes);
  return bench.take(dx);
}

double row_reference(const doubles& logits, std::size_t first, std::size_t classes,
                     std::int32_t target) {
  double sum = 0;
  for (std::size_t j = 0; j < classes; ++j) sum += std::exp(logits[first + j]);
  return std::log(sum) - logits[first + static_cast<std::size_t>(target)];
}

double reference(const doubles& logits, const classes_of& targets, std::size_t classes) {
  double sum = 0;
  int counted = 0;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] < 0) continue;
    sum += row_reference(logits, i * classes, classes, targets[i]);
    ++counted;
  }
  return counted == 0 ? 0 : sum / counted;
}

// Every third row does not count.
classes_of some_targets(std::size_t rows, std::size_t classes) {
  classes_of targets;
  for (std::size_t i = 0; i < rows; ++i) {
    targets.push_back(i % 3 == 1 ? -1 - static_cast<std::int32_t>(i)
                                 : static_cast<std::int32_t>((7 * i + 5) % classes));
  }
  return targets;
}

const std::vector<std::size_t> widths{1, 2, 10, 31, 32, 33, 256, 1000};

class softmax_cross_entropy_op : public op_on_device {};
INSTANTIATE_TEST_SUITE_P(devices, softmax_cross_entropy_op, testing::ValuesIn(plain_devices()),
                         device_case);

TEST_P(softmax_cross_entropy_op, agrees_with_a_double_reference_over_the_rows_that_count) {
  for (const std::size_t classes : widths) {
    for (const std::size_t rows : {1U, 2U, 67U}) {
      SCOPED_TRACE(classes);
      const auto logits = random_values<float>(rows * classes, 1, 5.0F);
      const auto targets = some_targets(rows, classes);
      const auto width = static_cast<std::int64_t>(classes);
      const loss_and_count got = entropy(bench(), logits, targets, width);
      expect_near(floats{got.loss}, {reference(wide(logits), targets, classes)}, 1e-6);
      EXPECT_EQ(got.counted, static_cast<float>(rows - (rows + 1) / 3));
      EXPECT_EQ(entropy(bench(), logits, targets, width, place::shifted).loss, got.loss);
    }
  }
}

TEST_P(softmax_cross_entropy_op, adds_in_the_order_that_is_documented) {
  constexpr std::size_t rows = 2500;
  constexpr std::size_t classes = 37;
  const auto logits = random_values<float>(rows * classes, 2, 4.0F);
  const auto targets = some_targets(rows, classes);
  floats losses;
  float counted = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    const floats row = row_of(logits, i, classes);
    const float top = *std::ranges::max_element(row);
    floats exponentials;
    for (const float logit : row) exponentials.push_back(math::exp(logit - top));
    const float sum = math::log(in_slots(exponentials, 32));
    if (targets[i] < 0) {
      losses.push_back(0.0F);
      continue;
    }
    losses.push_back(sum + (top - row[static_cast<std::size_t>(targets[i])]));
    ++counted;
  }
  const loss_and_count got = entropy(bench(), logits, targets, classes);
  EXPECT_EQ(got.counted, counted);
  EXPECT_EQ(got.loss, in_slots(losses, 1024) / counted);
}

TEST_P(softmax_cross_entropy_op, the_gradient_agrees_with_central_differences) {
  for (const std::size_t classes : {1U, 2U, 10U, 33U, 100U}) {
    SCOPED_TRACE(classes);
    const auto logits = random_values<float>(7 * classes, 3, 4.0F);
    const auto targets = some_targets(7, classes);
    const auto width = static_cast<std::int64_t>(classes);
    const float counted = entropy(bench(), logits, targets, width).counted;
    for (const float dloss : {1.0F, -3.0F}) {
      const auto expected = central_differences(
          [&](const doubles& at) {
            return static_cast<double>(dloss) * reference(at, targets, classes);
          },
          wide(logits));
      const auto got = slopes(bench(), logits, targets, counted, dloss, width);
      expect_near(got, expected, 2e-7);
      expect_same_bits(slopes(bench(), logits, targets, counted, dloss, width, place::shifted),
                       got);
    }
  }
}

TEST_P(softmax_cross_entropy_op, a_row_of_the_gradient_has_the_bits_it_has_alone) {
  for (const std::size_t classes : {10U, 33U, 256U}) {
    const auto logits = random_values<float>(40 * classes, 4, 4.0F);
    const auto targets = some_targets(40, classes);
    const auto width = static_cast<std::int64_t>(classes);
    const auto together = slopes(bench(), logits, targets, 27, 0.5F, width);
    for (std::size_t i = 0; i < 40; ++i) {
      expect_same_bits(slopes(bench(), row_of(logits, i, classes), {targets[i]}, 27, 0.5F, width),
                       row_of(together, i, classes));
    }
  }
}

TEST_P(softmax_cross_entropy_op, rows_that_do_not_count_change_nothing_whatever_they_hold) {
  auto logits = random_values<float>(6 * 10, 5);
  const classes_of targets{3, -1, 0, -100, 9, -2};
  const float loss = entropy(bench(), logits, targets, 10).loss;
  for (const std::size_t row : {1U, 3U, 5U}) {
    std::fill_n(logits.begin() + static_cast<std::ptrdiff_t>(10 * row), 10, std::nanf(""));
  }
  const loss_and_count got = entropy(bench(), logits, targets, 10);
  EXPECT_EQ(got.loss, loss);
  EXPECT_EQ(got.counted, 3.0F);
  const auto dx = slopes(bench(), logits, targets, 3, 1, 10);
  for (const std::size_t row : {1U, 3U, 5U}) {
    expect_same_bits(row_of(dx, row, 10), floats(10, 0.0F));
  }
}

TEST_P(softmax_cross_entropy_op, where_no_row_counts_loss_and_gradient_are_zero) {
  const auto logits = random_values<float>(5 * 10, 6);
  const loss_and_count got = entropy(bench(), logits, classes_of(5, -1), 10);
  EXPECT_TRUE(same_bits(got.loss, 0.0F));
  EXPECT_TRUE(same_bits(got.counted, 0.0F));
  expect_same_bits(slopes(bench(), logits, classes_of(5, -1), 0, 1, 10), floats(50, 0.0F));
  const loss_and_count empty = entropy(bench(), {}, {}, 10);
  EXPECT_TRUE(same_bits(empty.loss, 0.0F));
  EXPECT_TRUE(same_bits(empty.counted, 0.0F));
  EXPECT_TRUE(slopes(bench(), {}, {}, 0, 1, 10).empty());
}

TEST_P(softmax_cross_entropy_op, one_class_is_certain) {
  const loss_and_count got = entropy(bench(), {5.0F, -1e30F}, {0, 0}, 1);
  EXPECT_EQ(got.loss, 0.0F);
  EXPECT_EQ(got.counted, 2.0F);
  for (const float one : slopes(bench(), {5.0F, -1e30F}, {0, 0}, 2, 1, 1)) EXPECT_EQ(one, 0.0F);
}

TEST_P(softmax_cross_entropy_op, a_target_that_is_no_class_makes_the_loss_and_its_row_no_number) {
  const auto logits = random_values<float>(3 * 33, 7);
  for (const std::int32_t target : {33, 34, std::numeric_limits<std::int32_t>::max()}) {
    const classes_of targets{1, target, 2};
    EXPECT_TRUE(std::isnan(entropy(bench(), logits, targets, 33).loss)) << target;
    EXPECT_EQ(entropy(bench(), logits, targets, 33).counted, 3.0F);
    const auto dx = slopes(bench(), logits, targets, 3, 1, 33);
    for (std::size_t i = 0; i < dx.size(); ++i) EXPECT_EQ(std::isnan(dx[i]), i / 33 == 1) << i;
  }
}

TEST_P(softmax_cross_entropy_op, takes_logits_that_are_large_or_minus_infinite) {
  const floats far{1e4F, 1e4F - 1, -infinity, -1e30F};
  const double gap = std::log1p(std::exp(-1.0));
  EXPECT_NEAR(static_cast<double>(entropy(bench(), far, {0}, 4).loss), gap, 1e-6);
  EXPECT_NEAR(static_cast<double>(entropy(bench(), far, {1}, 4).loss), gap + 1, 1e-6);
  EXPECT_EQ(entropy(bench(), far, {2}, 4).loss, infinity);
  const auto dx = slopes(bench(), far, {0}, 1, 1, 4);
  EXPECT_NEAR(static_cast<double>(dx[1]), 1 / (1 + std::exp(1.0)), 1e-6);
  EXPECT_NEAR(static_cast<double>(dx[0]), -1 / (1 + std::exp(1.0)), 1e-6);
  EXPECT_EQ(dx[2], 0.0F);
  EXPECT_EQ(dx[3], 0.0F);
  for (const floats& none : {floats{infinity, 0}, floats{std::nanf(""), 0},
                             floats{0, std::nanf("")}, floats(2, -infinity)}) {
    EXPECT_TRUE(std::isnan(entropy(bench(), none, {0}, 2).loss));
    for (const float one : slopes(bench(), none, {0}, 1, 1, 2)) EXPECT_TRUE(std::isnan(one));
  }
}

TEST_P(softmax_cross_entropy_op, the_gradient_may_overwrite_the_logits) {
  const auto logits = random_values<float>(50 * 100, 8);
  const auto targets = some_targets(50, 100);
  const auto x = bench().put(logits);
  const auto t = bench().put(targets);
  const auto counted = bench().put(floats{33});
  const auto dloss = bench().put(floats{2});
  launch(bench().on(), softmax_cross_entropy_grad, read<float>{x.span()},
         read<std::int32_t>{t.span()}, read<float>{counted.span()}, read<float>{dloss.span()},
         write<float>{x.span()}, 100);
  expect_same_bits(bench().take(x), slopes(bench(), logits, targets, 33, 2, 100));
}

TEST_P(softmax_cross_entropy_op, refuses_sizes_that_do_not_fit) {
  const auto a = bench().put(floats(16));
  const auto t = bench().put(classes_of(4));
  const auto in = [&](std::size_t count) { return read<float>{a.span().subview(0, count)}; };
  const auto out = [&](std::size_t count) { return write<float>{a.span().subview(0, count)}; };
  const auto rows = [&](std::size_t count) {
    return read<std::int32_t>{t.span().subview(0, count)};
  };
  const lending_stream on{bench().on()};
  const auto& loss = softmax_cross_entropy;
  EXPECT_THROW(launch(on, loss, in(8), rows(2), out(1), out(1), 3), usage_error);
  EXPECT_THROW(launch(on, loss, in(8), rows(2), out(1), out(1), 0), usage_error);
  EXPECT_THROW(launch(on, loss, in(8), rows(3), out(1), out(1), 4), usage_error);
  EXPECT_THROW(launch(on, loss, in(8), rows(2), out(2), out(1), 4), usage_error);
  EXPECT_THROW(launch(on, loss, in(8), rows(2), out(1), out(0), 4), usage_error);
  const auto& grad = softmax_cross_entropy_grad;
  EXPECT_THROW(launch(on, grad, in(8), rows(2), in(1), in(1), out(8), 3), usage_error);
  EXPECT_THROW(launch(on, grad, in(8), rows(1), in(1), in(1), out(8), 4), usage_error);
  EXPECT_THROW(launch(on, grad, in(8), rows(2), in(2), in(1), out(8), 4), usage_error);
  EXPECT_THROW(launch(on, grad, in(8), rows(2), in(1), in(0), out(8), 4), usage_error);
  EXPECT_THROW(launch(on, grad, in(8), rows(2), in(1), in(1), out(7), 4), usage_error);
}

TEST(softmax_cross_entropy, the_cuts_between_threads_change_nothing) {
  const auto logits = random_values<float>(301 * 50, 9);
  const auto targets = some_targets(301, 50);
  const floats one{1};
  floats loss(1);
  floats counted(1);
  floats dx(logits.size());
  cpu_call call{{}, odd_pieces()};
  const auto in = [](const auto& from) { return view{from.data(), from.size()}; };
  const auto out = [](floats& to) { return write<float>{view{to.data(), to.size()}}; };
  ops::softmax_cross_entropy_cpu(call, read<float>{in(logits)}, read<std::int32_t>{in(targets)},
                                 out(loss), out(counted), 50);
  ops::softmax_cross_entropy_grad_cpu(call, read<float>{in(logits)},
                                      read<std::int32_t>{in(targets)}, read<float>{in(counted)},
                                      read<float>{in(one)}, out(dx), 50);
  op_bench bench{"cpu", 1};
  EXPECT_EQ(loss[0], entropy(bench, logits, targets, 50).loss);
  expect_same_bits(dx, slopes(bench, logits, targets, counted[0], 1, 50));
}

TEST(softmax_cross_entropy, cuda_gives_the_bits_of_the_cpu) {
  if (!gpu_or_skip()) GTEST_SKIP() << "no GPU answers";
  op_bench cpu{"cpu"};
  op_bench cuda{automatic_device()};
  for (const std::size_t classes : widths) {
    const auto logits = random_values<float>(2500 * classes, 10, 20.0F);
    const auto targets = some_targets(2500, classes);
    const auto width = static_cast<std::int64_t>(classes);
    const loss_and_count expected = entropy(cpu, logits, targets, width);
    const loss_and_count got = entropy(cuda, logits, targets, width);
    EXPECT_EQ(got.loss, expected.loss);
    EXPECT_EQ(got.counted, expected.counted);
    expect_same_bits(slopes(cuda, logits, targets, expected.counted, 0.7F, width),
                     slopes(cpu, logits, targets, expected.counted, 0.7F, width));
  }
}

}  // namespace
}  // namespace reprise::test
