// Rule 4: a captured stream forks to another by event wait, and every fork joins before the end.
#include "tests/conformance/conformance.hpp"

namespace reprise::test {
namespace {

TEST_P(rule_04, a_fork_that_is_joined_becomes_part_of_the_graph) {
  const stream branch{dev()};
  const auto x = filled<int>(4, 0);
  const auto y = filled<int>(4, 0);
  s().synchronize();
  const graph made = capture(s(), [&](stream_ref c) {
    fill(c, write<int>{x}, 1);
    order(c, branch);
    EXPECT_TRUE(stream_ref{branch}.capturing());
    copy(branch, read<int>{x}, write<int>{y});
    order(branch, c);
    fill(c, write<int>{x}, 2);
  });
  EXPECT_FALSE(stream_ref{branch}.capturing());
  EXPECT_EQ(made.size(), 3U);
  const executable replayed = made.instantiate(s());
  EXPECT_EQ(read_back(s(), y), std::vector<int>(4, 0));
  for (int i = 0; i < 3; ++i) {
    fill(s(), write<int>{x}, 9);
    replayed.launch(s());
    EXPECT_EQ(read_back(s(), y), std::vector<int>(4, 1));
    EXPECT_EQ(read_back(s(), x), std::vector<int>(4, 2));
  }
  expect_clean(branch);
}

TEST_P(rule_04, what_comes_after_the_join_comes_after_both_branches) {
  const auto x = number();
  const auto y = number();
  const buffer<int> both{memory(), 2, s()};
  const stream side{dev()};
  s().synchronize();
  const graph made = capture(s(), [&](stream_ref c) {
    append(c, x, 1);
    order(c, side);
    append(side, y, 5);
    append(side, y, 6);
    append(c, x, 2);
    order(side, c);
    copy(c, read<int>{x}, write<int>{both.all().subview(0, 1)});
    copy(c, read<int>{y}, write<int>{both.all().subview(1, 1)});
  });
  EXPECT_EQ(made.size(), 6U);
  made.instantiate(s()).launch(s());
  EXPECT_EQ(read_back(s(), both), (std::vector<int>{12, 56}));
}

// The graph then keeps the priority of each node, which changes no order.
TEST_P(rule_04, streams_of_both_priorities_may_be_in_one_capture) {
  const stream ahead{dev(), stream_priority::ahead};
  const stream behind{dev()};
  const auto x = number();
  const auto y = number();
  order(s(), ahead);
  const graph made = capture(ahead, [&](stream_ref c) {
    append(c, x, 1);
    order(c, behind);
    append(behind, y, 5);
    append(c, x, 2);
    order(behind, c);
    append(c, y, 6);
  });
  EXPECT_EQ(made.size(), 4U);
  made.instantiate(s()).launch(s());
  made.without({}).instantiate(s()).launch(s());
  EXPECT_EQ(read_back(s(), x), std::vector{1212});
  EXPECT_EQ(read_back(s(), y), std::vector{5656});
}

// Events that die in the body are put off until the end of the capture.
TEST_P(rule_04, a_fork_of_a_fork_may_be_joined_through_it) {
  const stream first{dev()};
  const stream second{dev()};
  const auto x = number();
  const graph made = capture(s(), [&](stream_ref c) {
    order(c, first);
    append(first, x, 1);
    order(first, second);
    append(second, x, 2);
    order(second, first);
    append(first, x, 3);
    order(first, c);
  });
  EXPECT_EQ(made.size(), 3U);
  const executable replayed = made.instantiate(s());
  replayed.launch(s());
  EXPECT_EQ(value_of(s(), x), 123);
}

TEST_P(rule_04, a_fork_that_is_not_joined_is_refused_by_name) {
  const stream joined{dev()};
  const stream left_open{dev()};
  const auto line = std::source_location::current().line() - 1;
  const buffer<int> x{memory(), 4, s()};
  const buffer<int> y{memory(), 4, s()};
  const std::string message = message_of<capture_error>([&] {
    capture(s(), [&](stream_ref c) {
      order(c, joined);
      order(c, left_open);
      fill(joined, write<int>{x}, 1);
      fill(left_open, write<int>{y}, 1);
      order(joined, c);
    });
  });
  expect_names(message, "end_capture", GetParam(), "forks_test.cpp");
  EXPECT_TRUE(has(message, "stream 3 (made at forks_test.cpp:" + std::to_string(line) +
                               ") was forked and not joined"))
      << message;
  EXPECT_FALSE(has(message, "stream 2 ")) << message;
  for (const stream_ref of : {s(), stream_ref{joined}, stream_ref{left_open}}) expect_clean(of);
}

TEST_P(rule_04, a_fork_with_work_after_its_join_is_not_joined) {
  const stream branch{dev()};
  const buffer<int> x{memory(), 4, s()};
  const std::string message = message_of<capture_error>([&] {
    capture(s(), [&](stream_ref c) {
      order(c, branch);
      fill(branch, write<int>{x}, 1);
      order(branch, c);
      fill(branch, write<int>{x}, 2);
    });
  });
  EXPECT_TRUE(has(message, "stream 2 ")) << message;
  expect_clean(s());
  expect_clean(branch);
}

// CUDA minds or not; either way the stream is named or the graph is whole.
TEST_P(rule_04, a_fork_without_work_is_whole_or_named) {
  const auto x = number();
  const stream side{dev()};
  try {
    const graph made = capture(s(), [&](stream_ref c) {
      append(c, x, 1);
      order(c, side);
    });
    RecordProperty("fork_without_work", "accepted");
    EXPECT_EQ(made.size(), 1U);
  } catch (const capture_error& refusal) {
    RecordProperty("fork_without_work", "refused");
    EXPECT_TRUE(has(refusal.what(), "stream 2")) << refusal.what();
  }
  expect_clean(side);
}

TEST_P(rule_04, a_fork_is_freed_when_the_capture_is_given_up) {
  const stream branch{dev()};
  const buffer<int> x{memory(), 4, s()};
  EXPECT_THROW(capture(s(),
                       [&](stream_ref c) {
                         order(c, branch);
                         fill(branch, write<int>{x}, 1);
                         throw usage_error{"no"};
                       }),
               usage_error);
  EXPECT_FALSE(stream_ref{branch}.capturing());
  expect_clean(branch);
}

TEST_P(rule_04, a_stream_may_live_in_the_body_only) {
  const buffer<int> x{memory(), 4, s()};
  const reports quiet;
  const graph made = capture(s(), [&](stream_ref c) {
    const stream branch{dev()};
    order(c, branch);
    fill(branch, write<int>{x}, 1);
    order(branch, c);
  });
  const executable replayed = made.instantiate(s());
  replayed.launch(s());
  EXPECT_EQ(read_back(s(), x), std::vector<int>(4, 1));
  EXPECT_EQ(reports::taken(), std::vector<std::string>{});
  expect_clean(s());
}

TEST_P(rule_04, an_event_may_be_recorded_outside_first_and_then_inside) {
  event reused{dev()};
  reused.record(s());
  const stream branch{dev()};
  const buffer<int> x{memory(), 4, s()};
  const graph made = capture(s(), [&](stream_ref c) {
    reused.record(c);
    reused.wait(branch);
    EXPECT_TRUE(stream_ref{branch}.capturing());
    fill(branch, write<int>{x}, 1);
    reused.record(branch);
    reused.wait(c);
  });
  EXPECT_EQ(made.size(), 1U);
}

}  // namespace
}  // namespace reprise::test
