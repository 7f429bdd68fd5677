#include "reprise/ops/argmax.hpp"

#include <limits>

#include "tests/ops/bench.hpp"

namespace reprise::test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
const float nan = std::nanf("");

std::vector<std::int32_t> argmax_of(op_bench& bench, const std::vector<float>& logits,
                                    std::size_t width, place where = place::aligned) {
  const auto from = bench.put(logits, where);
  const auto to = bench.room<std::int32_t>(logits.size() / width);
  launch(bench.on(), argmax, read<float>{from.span()}, write<std::int32_t>{to.span()},
         static_cast<std::int64_t>(width));
  return bench.take(to);
}

std::vector<std::int32_t> reference(const std::vector<float>& logits, std::size_t width) {
  std::vector<std::int32_t> out;
  for (std::size_t first = 0; first < logits.size(); first += width) {
    const auto row = logits.begin() + static_cast<std::ptrdiff_t>(first);
    out.push_back(static_cast<std::int32_t>(
        std::max_element(row, row + static_cast<std::ptrdiff_t>(width)) - row));
  }
  return out;
}

class argmax_op : public op_on_device {};
INSTANTIATE_TEST_SUITE_P(devices, argmax_op, testing::ValuesIn(plain_devices()), device_case);

TEST_P(argmax_op, finds_the_greatest_at_every_shape) {
  for (const std::size_t width : {1, 2, 31, 1023, 4096, 4099, 32000, 151936}) {
    for (const std::size_t rows : {0, 1, 3, 17}) {
      SCOPED_TRACE(testing::Message() << rows << " rows of " << width);
      const auto logits = random_values<float>(rows * width, width + rows);
      const auto want = reference(logits, width);
      expect_same_bits(argmax_of(bench(), logits, width), want);
      expect_same_bits(argmax_of(bench(), logits, width, place::shifted), want);
    }
  }
}

TEST_P(argmax_op, finds_it_wherever_it_is) {
  const std::size_t width = 2 * 4096 + 5;
  std::vector<float> logits(width, -3.0f);
  for (std::size_t at = 0; at < width; at += 61) {
    logits[at] = -2.0f;
    EXPECT_EQ(argmax_of(bench(), logits, width)[0], static_cast<std::int32_t>(at));
    logits[at] = -3.0f;
  }
}

TEST_P(argmax_op, takes_the_lowest_of_equals) {
  for (const std::size_t width : {8, 5000}) {
    EXPECT_EQ(argmax_of(bench(), std::vector<float>(width, 1.5f), width)[0], 0);
    std::vector<float> logits(width, -1.0f);
    logits[width - 1] = 0.0f;
    logits[width - 2] = -0.0f;
    logits[width - 4] = 0.0f;
    EXPECT_EQ(argmax_of(bench(), logits, width)[0], static_cast<std::int32_t>(width - 4));
  }
}

TEST_P(argmax_op, not_a_number_never_wins) {
  EXPECT_EQ(argmax_of(bench(), {nan, -infinity, nan}, 3)[0], 1);
  EXPECT_EQ(argmax_of(bench(), {nan, 1.0f, nan, 2.0f, -nan}, 5)[0], 3);
  EXPECT_EQ(argmax_of(bench(), {nan, infinity, nan, 3e38f}, 4)[0], 1);
  EXPECT_EQ(argmax_of(bench(), {nan, nan, nan}, 3)[0], 0);
  EXPECT_EQ(argmax_of(bench(), {-infinity, -infinity}, 2)[0], 0);
  std::vector<float> logits(6000, nan);
  logits[5000] = -7.0f;
  EXPECT_EQ(argmax_of(bench(), logits, logits.size())[0], 5000);
}

TEST_P(argmax_op, refuses_sizes_that_do_not_fit) {
  const auto logits = bench().put(std::vector<float>(12));
  const auto out = bench().room<std::int32_t>(3);
  const auto run = [&](std::size_t size, std::int64_t width) {
    launch(bench().on(), argmax, read<float>{logits.span().subview(0, size)},
           write<std::int32_t>{out.span()}, width);
  };
  EXPECT_NO_THROW(run(12, 4));
  EXPECT_THROW(run(11, 4), usage_error);
  EXPECT_THROW(run(12, 6), usage_error);
  EXPECT_THROW(run(12, 0), usage_error);
  EXPECT_THROW(run(12, std::int64_t{1} << 31), usage_error);
}

}  // namespace
}  // namespace reprise::test
