// Rule 3: a capture starts on one stream, in thread-local mode; other threads and streams are not
// disturbed by it, nor it by them. Threads wait for each other, never for a time.
#include "tests/conformance/all_came.hpp"
#include "tests/conformance/captured_beside.hpp"
#include "tests/conformance/conformance.hpp"

namespace reprise::test {
namespace {

TEST_P(rule_03, a_stream_that_is_not_in_the_capture_goes_on) {
  const stream other{dev()};
  const buffer<int> x{memory(), 4, other};
  const buffer<int> y{memory(), 4, s()};
  event before{dev()};
  before.record(s());
  s().synchronize();
  const auto work_elsewhere = [&](int value) {
    EXPECT_TRUE(before.finished());
    before.synchronize();
    const stream brief{dev()};
    event made_here{dev()};
    upload(other, std::vector<int>(4, value), x);
    made_here.record(other);
    made_here.wait(brief);
    brief.synchronize();
    EXPECT_EQ(read_back(other, x), std::vector<int>(4, value));
  };
  const graph made = capture(s(), [&](stream_ref c) {
    fill(c, write<int>{y}, 1);
    EXPECT_TRUE(c.capturing());
    EXPECT_FALSE(stream_ref{other}.capturing());
    work_elsewhere(3);
    host_thread{dev(),
                [&] {
                  for (int i = 0; i < 200; ++i) work_elsewhere(i);
                }}
        .join();
    fill(c, write<int>{y}, 2);
  });
  EXPECT_EQ(made.size(), 2U);
  expect_clean(other);
}

TEST_P(rule_03, D1_another_thread_may_query_events_and_idle_streams) {
  const buffer<int> x{memory(), 4, s()};
  const stream idle{dev()};
  event passed{dev()};
  passed.record(s());
  s().synchronize();
  const graph made = captured_beside(s(), x, [&] {
    for (int i = 0; i < 1000; ++i) {
      ASSERT_TRUE(passed.finished());
      idle.synchronize();
    }
    EXPECT_EQ(error_slot(), 0);
  });
  EXPECT_EQ(made.size(), 2U);
  const executable replayed = made.instantiate(s());
  replayed.launch(s());
  EXPECT_EQ(read_back(s(), x), std::vector<int>(4, 2));
}

TEST_P(rule_03, D1_another_thread_is_told_right_about_an_event_that_has_not_happened) {
  const buffer<int> x{memory(), 4, s()};
  const stream busy{dev()};
  event passed{dev()};
  held_stream held{busy};
  passed.record(busy);
  const graph made = captured_beside(s(), x, [&] {
    EXPECT_EQ(passed.finished(), !runs_later());
    held.release();
    passed.synchronize();
    EXPECT_TRUE(passed.finished());
    EXPECT_EQ(error_slot(), 0);
  });
  EXPECT_EQ(made.size(), 2U);
}

TEST_P(rule_03, D2_another_thread_may_pin_and_free_memory) {
  const buffer<int> x{memory(), 4, s()};
  const auto pin = [&] {
    const pinned<int> host{dev(), 1000};
    host[999] = 1;
    const stream copying{dev()};
    pool own{dev()};
    const buffer<int> y{own, 1000, copying};
    copy(copying, read<int>{host}, write<int>{y});
    EXPECT_EQ(read_back(copying, y)[999], 1);
  };
  const graph made = captured_beside(s(), x, pin);
  EXPECT_EQ(made.size(), 2U);
  for (int i = 0; i < 10; ++i) pin();
  expect_clean(s());
  EXPECT_EQ(dev().pinned_bytes(), 0U);
}

TEST_P(rule_03, two_threads_may_capture_at_once) {
  constexpr int rounds = 50;
  all_came both{dev(), 2};
  std::array<std::vector<int>, 2> got;
  const auto work = [&](int me) {
    const stream own{dev()};
    const buffer<int> x{memory(), 4, own};
    const buffer<int> y{memory(), 4, own};
    both.arrive_and_wait();
    for (int i = 0; i < rounds; ++i) {
      const int value = 1000 * me + i;
      const graph made = capture(own, [&](stream_ref c) {
        fill(c, write<int>{x}, value);
        const buffer<int> temporary{memory(), 300, c};
        copy(c, read<int>{x}, write<int>{temporary});
        copy(c, read<int>{temporary.all().subview(0, 4)}, write<int>{y});
      });
      const executable replayed = made.instantiate(own);
      replayed.launch(own);
      const std::vector<int> seen = read_back(own, y);
      if (made.size() == 3 && seen == std::vector<int>(4, value)) {
        got[static_cast<std::size_t>(me)].push_back(value);
      }
    }
  };
  host_thread first{dev(), [&] { work(0); }};
  host_thread second{dev(), [&] { work(1); }};
  first.join();
  second.join();
  EXPECT_EQ(got[0].size(), static_cast<std::size_t>(rounds));
  EXPECT_EQ(got[1].size(), static_cast<std::size_t>(rounds));
}

TEST_P(rule_03, a_capture_that_fails_on_another_thread_does_not_fail_this_one) {
  const buffer<int> x{memory(), 4, s()};
  const graph made = captured_beside(s(), x, [&] {
    const stream own{dev()};
    EXPECT_THROW(capture(own, [](stream_ref c) { c.synchronize(); }), capture_error);
    EXPECT_THROW(capture(own, [](stream_ref) { throw usage_error{"no"}; }), usage_error);
  });
  EXPECT_EQ(made.size(), 2U);
}

}  // namespace
}  // namespace reprise::test
