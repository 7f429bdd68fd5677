// Who takes a turn when, and when weights move.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/denoise/support.hpp"

namespace reprise {
namespace {

using test::asked;

std::string order(const std::vector<denoise::image_request>& requests, std::int64_t moves) {
  std::string text;
  denoise::take_turns(
      requests, moves, [&](std::size_t i) { text += static_cast<char>('a' + i); },
      [&] { text += '|'; });
  return text;
}

TEST(a_schedule, gives_each_request_a_turn_until_it_is_done) {
  EXPECT_EQ(order({asked(1, {0}), asked(2, {0}), asked(1, {0})}, 0), "abcabcbb");
  EXPECT_EQ(order({asked(2, {0})}, 0), "aaaa");
}

TEST(a_schedule, moves_weights_after_equal_parts) {
  EXPECT_EQ(order({asked(2, {0}), asked(1, {0})}, 1), "aba|baa");
  EXPECT_EQ(order({asked(3, {0})}, 2), "aa|aa|aa");
}

TEST(a_schedule, moves_as_often_as_asked_even_where_there_are_fewer_steps) {
  const std::string text = order({asked(1, {0})}, 5);
  EXPECT_EQ(std::count(text.begin(), text.end(), '|'), 5) << text;
}

TEST(a_plan, counts_a_recording_that_moved_weights_broke_as_eager_and_then_anew) {
  denoise::denoise_options options;
  options.requests = {asked(3, {0})};
  options.weight_moves = 1;
  const step_counts planned = denoise::planned_counts(options);
  // e1 euler1 e2 | euler2 e3 euler3: the third evaluation meets moved weights.
  EXPECT_EQ(planned.captured, 2U);
  EXPECT_EQ(planned.replayed, 3U);
  EXPECT_EQ(planned.eager_reasons, (std::map<std::string, std::uint64_t>{{"fact changed", 1}}));
  EXPECT_EQ(planned.evicted, 1U);
}

}  // namespace
}  // namespace reprise
