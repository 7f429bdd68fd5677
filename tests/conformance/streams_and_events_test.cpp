// Rule 1: work on a stream runs in order, and across streams only as events order it.
#include <algorithm>
#include <numeric>

#include "reprise/device/host_thread.hpp"
#include "tests/conformance/conformance.hpp"

namespace reprise::test {
namespace {

TEST_P(rule_01, a_stream_runs_its_work_in_order) {
  const auto x = number(1000);
  for (int digit = 1; digit <= 9; ++digit) append(s(), x, digit);
  EXPECT_EQ(read_back(s(), x), std::vector<int>(1000, 123456789));
}

TEST_P(rule_01, copies_of_every_kind_take_their_turn) {
  std::vector<int> numbers(1000);
  std::iota(numbers.begin(), numbers.end(), 1);
  const buffer<int> a{memory(), 1000, s()};
  const buffer<int> b{memory(), 1000, s()};
  const pinned<int> p{dev(), 1000};
  const pinned<int> q{dev(), 1000};
  std::vector<int> out(1000);
  upload(s(), numbers, a);
  copy(s(), read<int>{a}, write<int>{b});
  copy(s(), read<int>{b}, write<int>{p});
  copy(s(), read<int>{p}, write<int>{q});
  fill(s(), write<int>{a}, 0);
  copy(s(), read<int>{q}, write<int>{a});
  copy(s(), read<int>{a}, write<int>{view<int>{out.data(), out.size()}});
  s().synchronize();
  EXPECT_EQ(out, numbers);
  EXPECT_TRUE(std::ranges::equal(numbers, std::span{p.data(), p.size()}));
}

TEST_P(rule_01, a_replay_takes_its_turn) {
  const buffer<int> x{memory(), 1, s()};
  const buffer<int> seen{memory(), 3, s()};
  const graph made = capture(s(), [&](stream_ref c) { fill(c, write<int>{x}, 1); });
  const executable replayed = made.instantiate(s());
  fill(s(), write<int>{x}, 0);
  copy(s(), read<int>{x}, write<int>{seen.all().subview(0, 1)});
  replayed.launch(s());
  copy(s(), read<int>{x}, write<int>{seen.all().subview(1, 1)});
  fill(s(), write<int>{x}, 2);
  copy(s(), read<int>{x}, write<int>{seen.all().subview(2, 1)});
  EXPECT_EQ(read_back(s(), seen), (std::vector<int>{0, 1, 2}));
}

TEST_P(rule_01, a_host_call_runs_between_the_works_around_it) {
  const pinned<int> p{dev(), 1};
  const auto one = filled<int>(1, 1);
  const auto two = filled<int>(1, 2);
  std::vector<int> seen;
  p[0] = 0;
  s().synchronize();
  const auto look = [&] { seen.push_back(p[0]); };
  host_call(s(), "look", {}, look);
  copy(s(), read<int>{one}, write<int>{p});
  host_call(s(), "look", {}, look);
  copy(s(), read<int>{two}, write<int>{p});
  host_call(s(), "look", {}, look);
  s().synchronize();
  EXPECT_EQ(seen, (std::vector<int>{0, 1, 2}));
}

TEST_P(rule_01, a_stream_does_not_wait_for_another) {
  const auto x = filled<int>(10, 1);
  s().synchronize();
  const stream other{dev()};
  const pinned<int> out{dev(), 10};
  out[9] = 0;
  const held_stream held{s()};
  copy(other, read<int>{x}, write<int>{out});
  other.synchronize();
  EXPECT_EQ(out[9], 1);
  EXPECT_STILL_HELD(held);
}

TEST_P(rule_01, a_stream_waits_for_its_work_when_it_is_destroyed) {
  const pinned<int> out{dev(), 1};
  out[0] = 0;
  const auto x = filled<int>(1, 7);
  s().synchronize();
  std::optional<stream> dying{dev()};
  held_stream held{*dying};
  copy(*dying, read<int>{x}, write<int>{out});
  EXPECT_STILL_HELD(held);
  host_thread releasing{dev(), [&] { held.release(); }};
  dying.reset();
  EXPECT_EQ(out[0], 7);
  releasing.join();
}

TEST_P(rule_01, host_calls_of_a_stream_that_dies_still_run) {
  std::atomic<int> ran{0};
  {
    const stream dying{dev()};
    for (int i = 0; i < 10; ++i) host_call(dying, "count", {}, [&] { ++ran; });
  }
  EXPECT_EQ(ran, 10);
}

TEST_P(rule_01, an_event_that_was_never_recorded_holds_nobody_and_counts_as_finished) {
  const event never{dev()};
  EXPECT_TRUE(never.finished());
  never.wait(s());
  never.synchronize();
  expect_clean(s());
}

TEST_P(rule_01, an_event_orders_work_across_streams) {
  const stream other{dev()};
  event written{dev()};
  event looked{dev()};
  const auto x = number(1000);
  const pinned<int> out{dev(), 1000};
  held_stream held{s()};
  for (int digit = 1; digit <= 9; ++digit) append(s(), x, digit);
  written.record(s());
  written.wait(other);
  copy(other, read<int>{x}, write<int>{out});
  looked.record(other);
  EXPECT_EQ(looked.finished(), !runs_later());
  EXPECT_STILL_HELD(held);
  held.release();
  looked.synchronize();
  EXPECT_EQ(out[999], 123456789);
}

TEST_P(rule_01, an_event_is_finished_when_the_work_before_it_is) {
  event passed{dev()};
  const pinned<int> p{dev(), 1};
  p[0] = 0;
  const auto x = filled<int>(1, 5);
  held_stream held{s()};
  copy(s(), read<int>{x}, write<int>{p});
  passed.record(s());
  EXPECT_EQ(passed.finished(), !runs_later());
  EXPECT_EQ(error_slot(), 0) << "'not ready' is an answer, not an error";
  held.release();
  passed.synchronize();
  EXPECT_TRUE(passed.finished());
  EXPECT_EQ(p[0], 5);
}

TEST_P(rule_01, an_event_that_is_recorded_again_stands_for_the_later_work) {
  const stream other{dev()};
  const auto x = number();
  event passed{dev()};
  passed.record(s());
  s().synchronize();
  EXPECT_TRUE(passed.finished());
  held_stream held{s()};
  append(s(), x, 4);
  passed.record(s());
  EXPECT_EQ(passed.finished(), !runs_later());
  passed.wait(other);
  append(other, x, 2);
  held.release();
  EXPECT_EQ(value_of(other, x), 42);
}

TEST_P(rule_01, an_event_may_be_used_from_another_thread) {
  const auto x = number(100);
  event written{dev()};
  append(s(), x, 2);
  written.record(s());
  std::vector<int> seen;
  host_thread{dev(),
              [&] {
                const stream other{dev()};
                written.wait(other);
                seen = read_back(other, x);
              }}
      .join();
  EXPECT_EQ(seen, std::vector<int>(100, 2));
}

}  // namespace
}  // namespace reprise::test
