// Which way a change goes is arithmetic, and says why.
#include "reprise/toggle/automatic.hpp"

#include <gtest/gtest.h>

#include "tests/support/observe.hpp"

namespace reprise::test {
namespace {

constexpr toggle_facts small_change{.nodes = 100, .switchable = 36, .off = 4, .changed = 4};

TEST(automatic, a_small_change_now_and_then_is_made_by_the_host) {
  const toggle_choice choice = choose_way(small_change);
  EXPECT_EQ(choice.way, toggle_mode::host_lazy);
  EXPECT_TRUE(has(choice.why, "4 of 100 nodes change")) << choice.why;
}

TEST(automatic, with_none_on_nothing_is_in_the_graph) {
  toggle_facts none = small_change;
  none.off = none.switchable;
  EXPECT_EQ(choose_way(none).way, toggle_mode::variants);
  EXPECT_TRUE(has(choose_way(none).why, "none is on"));
}

TEST(automatic, with_all_on_the_executable_itself_runs) {
  toggle_facts all = small_change;
  all.off = 0;
  EXPECT_EQ(choose_way(all).way, toggle_mode::host_lazy);
  EXPECT_TRUE(has(choose_way(all).why, "all are on"));
}

TEST(automatic, a_set_that_comes_again_gets_an_executable_of_its_own) {
  toggle_facts again = small_change;
  again.wanted_before = 1;
  EXPECT_EQ(choose_way(again).way, toggle_mode::host_lazy);
  again.wanted_before = 2;
  EXPECT_EQ(choose_way(again).way, toggle_mode::variants);
  EXPECT_TRUE(has(choose_way(again).why, "came 2 times")) << choose_way(again).why;
}

TEST(automatic, one_that_is_there_costs_nothing) {
  toggle_facts there = small_change;
  there.has_variant = true;
  EXPECT_EQ(choose_way(there).way, toggle_mode::variants);
}

// 30 nodes off cost 8.7 us a replay: 40 replays are more than one instantiation.
TEST(automatic, a_set_that_stays_for_long_is_worth_an_executable) {
  toggle_facts stays = small_change;
  stays.off = 30;
  stays.launches_per_change = 10;
  EXPECT_EQ(choose_way(stays).way, toggle_mode::host_lazy);
  stays.launches_per_change = 40;
  EXPECT_EQ(choose_way(stays).way, toggle_mode::variants);
}

TEST(automatic, what_a_large_executable_loses_for_good_counts) {
  toggle_facts large = small_change;
  large.changed = 36;
  large.off = 1;
  large.launches_per_change = 100;
  EXPECT_EQ(choose_way(large).way, toggle_mode::host_lazy);
  large.nodes = 400;
  EXPECT_EQ(choose_way(large).way, toggle_mode::variants);
  EXPECT_EQ(predicted_demotion_us(200, 100), 0);
  EXPECT_DOUBLE_EQ(predicted_demotion_us(1000, 1000), 100);
}

TEST(automatic, where_no_other_may_run_the_host_does_it) {
  toggle_facts alone = small_change;
  alone.off = alone.switchable;
  alone.may_have_twins = false;
  EXPECT_EQ(choose_way(alone).way, toggle_mode::host_lazy);
}

}  // namespace
}  // namespace reprise::test
