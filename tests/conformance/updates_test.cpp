// Rule 12: an executable takes all parameters from another graph of its topology, or none.
#include "tests/conformance/all_came.hpp"
#include "tests/conformance/conformance.hpp"

namespace reprise::test {
namespace {

// Three works in a row: digits a and b to `x`, and a fill of `y`.
struct three_works {
  graph record(stream_ref on, int a, int b, int filled) {
    return capture(on, [&](stream_ref c) {
      first = launch(c, append_digit, inout(*x), a);
      second = launch(c, append_digit, inout(*x), b);
      third = fill(c, write<int>{*y}, filled);
    });
  }

  const buffer<int>* x;
  const buffer<int>* y;
  node_id first{}, second{}, third{};
};

TEST_P(rule_12, an_update_takes_all_parameters) {
  const auto x = number();
  const auto y = number();
  three_works works{&x, &y};
  executable step = works.record(s(), 1, 2, 3).instantiate(s());
  step.launch(s());
  EXPECT_EQ(value_of(s(), y), 3);
  EXPECT_TRUE(step.update(works.record(s(), 7, 8, 9)));
  step.launch(s());
  EXPECT_EQ(value_of(s(), x), 1278);
  EXPECT_EQ(value_of(s(), y), 9);
}

TEST_P(rule_12, D9_a_refused_update_changes_nothing_and_leaves_no_error) {
  const auto x = number();
  const auto y = number();
  three_works works{&x, &y};
  executable step = works.record(s(), 1, 2, 3).instantiate(s());
  const graph shorter = capture(s(), [&](stream_ref c) { append(c, x, 9); });
  const graph other_kinds = capture(s(), [&](stream_ref c) {
    fill(c, write<int>{y}, 9);
    append(c, x, 9);
    append(c, x, 9);
  });
  const graph longer = capture(s(), [&](stream_ref c) {
    for (int i = 0; i < 4; ++i) append(c, x, 9);
  });
  const graph nothing = capture(s(), [](stream_ref) {});
  for (const graph* other : {&shorter, &other_kinds, &longer, &nothing}) {
    EXPECT_FALSE(step.update(*other));
    EXPECT_EQ(error_slot(), 0);
    fill(s(), write<int>{x}, 0);
    step.launch(s());
    EXPECT_EQ(value_of(s(), x), 12);
    EXPECT_EQ(value_of(s(), y), 3);
  }
  for (int digit = 0; digit < 10; ++digit) {  // and healthy ones after it
    EXPECT_TRUE(step.update(works.record(s(), digit, digit, digit)));
    fill(s(), write<int>{x}, 0);
    step.launch(s());
    EXPECT_EQ(value_of(s(), x), 11 * digit);
    EXPECT_EQ(value_of(s(), y), digit);
  }
  expect_clean(s());
}

TEST_P(rule_12, changes_of_single_nodes_are_made_again_on_top) {
  const auto x = number();
  const auto y = number();
  three_works works{&x, &y};
  const graph made = works.record(s(), 1, 2, 3);
  const three_works ids = works;
  executable step = made.instantiate(s());
  change(s(), step, ids.second, append_digit, inout(x), 5);
  step.enable(ids.third, false);
  EXPECT_TRUE(step.update(works.record(s(), 7, 8, 9)));
  step.launch(s());
  EXPECT_EQ(value_of(s(), x), 75);
  EXPECT_EQ(value_of(s(), y), 0) << "it is off";
  step.enable(ids.third, true);
  step.launch(s());
  EXPECT_EQ(value_of(s(), x), 7575);
  EXPECT_EQ(value_of(s(), y), 9) << "with what the update brought";
  EXPECT_TRUE(step.update(works.record(s(), 4, 4, 4)));
  step.launch(s());
  EXPECT_EQ(value_of(s(), x), 757545);
  EXPECT_EQ(value_of(s(), y), 4);
}

TEST_P(rule_12, a_refused_update_keeps_the_changes_of_single_nodes) {
  const auto x = number();
  const auto y = number();
  three_works works{&x, &y};
  executable step = works.record(s(), 1, 2, 3).instantiate(s());
  change(s(), step, works.first, append_digit, inout(x), 6);
  step.enable(works.second, false);
  EXPECT_FALSE(step.update(capture(s(), [&](stream_ref c) { append(c, x, 9); })));
  step.launch(s());
  EXPECT_EQ(value_of(s(), x), 6);
  EXPECT_EQ(value_of(s(), y), 3);
}

TEST_P(rule_12, an_update_waits_for_no_launch_and_leaves_those_that_are_enqueued) {
  const auto x = number();
  const auto y = number();
  three_works works{&x, &y};
  executable step = works.record(s(), 1, 2, 3).instantiate(s());
  const stream side{dev()};
  const graph other = works.record(side, 7, 8, 9);
  const graph shorter = capture(side, [&](stream_ref c) { append(c, x, 9); });
  held_stream held{s()};
  step.launch(s());
  EXPECT_TRUE(step.update(other));
  EXPECT_FALSE(step.update(shorter));
  EXPECT_STILL_HELD(held);
  step.launch(s());
  EXPECT_STILL_HELD(held);
  held.release();
  EXPECT_EQ(value_of(s(), x), 1278);
  EXPECT_EQ(value_of(s(), y), 9);
}

// Whichever comes last, the executable is one graph or the other, never half of each.
TEST_P(rule_12, updates_from_two_threads_are_taken_one_by_one) {
  const auto x = number();
  const auto y = number();
  three_works works{&x, &y};
  executable step = works.record(s(), 0, 0, 0).instantiate(s());
  const graph ones = works.record(s(), 1, 1, 1);
  const graph twos = works.record(s(), 2, 2, 2);
  for (int round = 0; round < 20; ++round) {
    all_came both{dev(), 2};
    std::atomic<int> taken{0};
    const auto update_with = [&](const graph& from) {
      both.arrive_and_wait();
      for (int i = 0; i < 10; ++i) taken += step.update(from) ? 1 : 0;
    };
    host_thread first{dev(), [&] { update_with(ones); }};
    host_thread second{dev(), [&] { update_with(twos); }};
    first.join();
    second.join();
    EXPECT_EQ(taken, 20);
    fill(s(), write<int>{x}, 0);
    step.launch(s());
    const int digit = value_of(s(), y);
    EXPECT_TRUE(digit == 1 || digit == 2) << digit;
    EXPECT_EQ(value_of(s(), x), 11 * digit);
  }
}

}  // namespace
}  // namespace reprise::test
