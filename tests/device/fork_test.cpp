// Captures over several streams: forks by waiting for a captured event, and joins.
#include "tests/device/support.hpp"

namespace reprise::test {
namespace {

class fork_on : public on_each_device {
 protected:
  static void order(stream_ref before, stream_ref after) {
    event passed{before.device()};
    passed.record(before);
    passed.wait(after);
  }
};

TEST_P(fork_on, that_is_joined_becomes_part_of_the_graph) {
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
  EXPECT_EQ(made.nodes(), 3U);
  const executable replayed = made.instantiate(s());
  EXPECT_EQ(read_back(s(), y), std::vector<int>(4, 0));
  for (int i = 0; i < 3; ++i) {
    fill(s(), write<int>{x}, 9);
    replayed.launch(s());
    EXPECT_EQ(read_back(s(), y), std::vector<int>(4, 1));
    EXPECT_EQ(read_back(s(), x), std::vector<int>(4, 2));
  }
  expect_usable(branch);
}

TEST_P(fork_on, of_a_fork_may_be_joined_through_it) {
  const stream first{dev()};
  const stream second{dev()};
  const buffer<int> x{memory(), 4, s()};
  const graph made = capture(s(), [&](stream_ref c) {
    order(c, first);
    order(first, second);
    fill(second, write<int>{x}, 3);
    order(second, first);
    order(first, c);
  });
  const executable replayed = made.instantiate(s());
  replayed.launch(s());
  EXPECT_EQ(read_back(s(), x), std::vector<int>(4, 3));
}

TEST_P(fork_on, that_is_not_joined_is_refused_by_name) {
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
  expect_names(message, "end_capture", GetParam(), "fork_test.cpp");
  EXPECT_TRUE(has(message,
                  "(made at fork_test.cpp:" + std::to_string(line) + ") was forked and not joined"))
      << message;
  EXPECT_FALSE(has(message, "fork_test.cpp:" + std::to_string(line - 1))) << message;
  for (const stream_ref of : {s(), stream_ref{joined}, stream_ref{left_open}}) expect_usable(of);
}

TEST_P(fork_on, with_work_after_its_join_is_not_joined) {
  const stream branch{dev()};
  const buffer<int> x{memory(), 4, s()};
  EXPECT_THROW(capture(s(),
                       [&](stream_ref c) {
                         order(c, branch);
                         fill(branch, write<int>{x}, 1);
                         order(branch, c);
                         fill(branch, write<int>{x}, 2);
                       }),
               capture_error);
  expect_usable(s());
  expect_usable(branch);
}

TEST_P(fork_on, is_freed_when_the_capture_is_given_up) {
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
  expect_usable(branch);
}

TEST_P(fork_on, may_die_inside_the_capture_once_it_is_joined) {
  const buffer<int> x{memory(), 4, s()};
  const graph made = capture(s(), [&](stream_ref c) {
    const stream branch{dev()};
    order(c, branch);
    fill(branch, write<int>{x}, 1);
    order(branch, c);
  });
  const executable replayed = made.instantiate(s());
  replayed.launch(s());
  EXPECT_EQ(read_back(s(), x), std::vector<int>(4, 1));
  expect_usable(s());
}

TEST_P(fork_on, cannot_be_waited_for_by_the_host) {
  const stream branch{dev()};
  EXPECT_THROW(capture(s(),
                       [&](stream_ref c) {
                         order(c, branch);
                         branch.synchronize();
                       }),
               capture_error);
  expect_usable(branch);
}

TEST_P(fork_on, cannot_begin_or_end_a_capture_of_its_own) {
  const stream branch{dev()};
  EXPECT_THROW(capture(s(),
                       [&](stream_ref c) {
                         order(c, branch);
                         capture(branch, [](stream_ref) {});
                       }),
               capture_error);
  EXPECT_THROW(capture(s(),
                       [&](stream_ref c) {
                         order(c, branch);
                         dev().api().end_capture(stream_ref{branch}.id(),
                                                 std::source_location::current());
                       }),
               capture_error);
  expect_usable(s());
  expect_usable(branch);
}

INSTANTIATE_TEST_SUITE_P(devices, fork_on, each_device(), device_of);

}  // namespace
}  // namespace reprise::test
