// Exploring a user's closure: which seeds failed and why, and what led there.
#include "reprise/platform/explore.hpp"

#include <gtest/gtest.h>

#include <sstream>
#include <stdexcept>

#include "reprise/base/error.hpp"
#include "reprise/base/fault_points.hpp"
#include "reprise/device/enqueue.hpp"
#include "reprise/device/memory.hpp"
#include "reprise/telemetry/log.hpp"
#include "tests/support/observe.hpp"

namespace reprise::test {
namespace {

// One stream writes, another reads; whether it waits is the question.
void handed_over(device_ref dev, bool waits) {
  const stream maker{dev};
  const stream user{dev};
  pool memory{dev, "test"};
  const buffer<int> x{memory, 16, maker};
  const buffer<int> y{memory, 16, user};
  event taken{dev};  // by the maker, out of the pool
  taken.record(maker);
  taken.wait(user);
  fill(maker, write<int>{x}, 3);
  if (waits) {
    event filled{dev};
    filled.record(maker);
    filled.wait(user);
  }
  copy(user, read<int>{x}, write<int>{y});
  user.synchronize();
}

void racing(device_ref dev) {
  handed_over(dev, false);
}
void ordered(device_ref dev) {
  handed_over(dev, true);
}
void throwing(device_ref) {
  throw std::runtime_error{"of its own"};
}

TEST(explore, a_right_closure_fails_under_no_seed) {
  const exploration seen = explore(50, ordered);
  EXPECT_TRUE(seen.failures.empty()) << seen;
  EXPECT_EQ(seen.seeds, 50U);
  EXPECT_GE(seen.operations, 100U) << "a fill and a copy in each";
  EXPECT_EQ(text_of(seen), "50 seeds found nothing\n");
}

TEST(explore, a_race_is_told_with_its_seed_its_kind_and_what_led_there) {
  const exploration seen = explore(200, racing);
  ASSERT_EQ(seen.failures.size(), 1U) << "it stops at the first";
  const failed_seed& failed = seen.failures.front();
  EXPECT_TRUE(failed.kind == "race" || failed.kind == "unwritten read") << failed.kind;
  EXPECT_FALSE(has(failed.what, "\n")) << failed.what;
  EXPECT_TRUE(has(failed.what, "explore_test.cpp")) << failed.what;
  EXPECT_FALSE(failed.trace.empty());
}

TEST(explore, the_seed_that_is_told_fails_again_with_the_same_trace) {
  const exploration seen = explore(200, racing);
  ASSERT_EQ(seen.failures.size(), 1U);
  const seed_run again = explore_seed(seen.failures.front().seed, racing);
  ASSERT_TRUE(again.failure.has_value());
  EXPECT_EQ(again.failure->what, seen.failures.front().what);
  EXPECT_EQ(again.failure->trace, seen.failures.front().trace);
}

TEST(explore, more_seeds_may_shorten_a_trace_and_never_lengthen_it) {
  explore_options plain;
  plain.shortening_seeds = 0;
  const exploration first = explore(200, racing, plain);
  const exploration shorter = explore(200, racing);
  ASSERT_EQ(first.failures.size(), 1U);
  ASSERT_EQ(shorter.failures.size(), 1U);
  EXPECT_LE(shorter.failures[0].trace.size(), first.failures[0].trace.size());
  EXPECT_EQ(shorter.failures[0].kind, first.failures[0].kind);
  EXPECT_EQ(shorter.seeds, first.seeds) << "those tried for it do not count";
}

TEST(explore, what_the_closure_throws_fails_its_seed) {
  const exploration seen = explore(5, throwing);
  ASSERT_EQ(seen.failures.size(), 1U);
  EXPECT_EQ(seen.failures[0].seed, 1U);
  EXPECT_EQ(seen.failures[0].kind, "thrown");
  EXPECT_EQ(seen.failures[0].what, "of its own");
  EXPECT_EQ(seen.seeds, 1U);
}

TEST(explore, goes_on_to_as_many_failures_as_were_asked_for) {
  explore_options options;
  options.most_failures = 3;
  options.first_seed = 10;
  const exploration seen = explore(5, throwing, options);
  ASSERT_EQ(seen.failures.size(), 3U);
  EXPECT_EQ(seen.failures[0].seed, 10U);
  EXPECT_EQ(seen.failures[2].seed, 12U);
}

TEST(explore, what_a_destructor_reports_fails_its_seed) {
  const reports outside;
  const exploration seen = explore(3, [](device_ref) { report_error("it failed\nin silence"); });
  ASSERT_EQ(seen.failures.size(), 1U);
  EXPECT_EQ(seen.failures[0].kind, "reported");
  EXPECT_EQ(seen.failures[0].what, "it failed in silence");
  EXPECT_TRUE(reports::taken().empty());
  report_error("after it");
  EXPECT_EQ(reports::taken(), std::vector<std::string>{"after it"}) << "the handler is back";
}

TEST(explore, log_lines_of_its_runs_are_dropped_and_later_ones_are_not) {
  std::vector<std::string> log;
  const log_sink before = set_log_sink([&](std::string_view line) { log.emplace_back(line); });
  (void)explore(3, [](device_ref) { log_line("inside"); });
  log_line("after it");
  set_log_sink(before);
  EXPECT_EQ(log, std::vector<std::string>{"after it"});
}

TEST(explore, a_leak_is_found_when_the_device_is_gone) {
  const exploration seen = explore(3, [](device_ref dev) {
    dev.api().allocate(memory_kind::pinned, 256, std::source_location::current());
  });
  ASSERT_EQ(seen.failures.size(), 1U);
  EXPECT_EQ(seen.failures[0].kind, "leak");
}

TEST(explore, says_which_landmarks_no_seed_came_to) {
  explore_options options;
  options.landmarks = {"test/never", "test/here"};
  const exploration seen = explore(
      4, [](device_ref) { landmark("test/here"); }, options);
  EXPECT_EQ(seen.landmarks_missed, std::vector<std::string>{"test/never"});
  EXPECT_TRUE(seen.failures.empty()) << "which is for the caller to judge";
  EXPECT_TRUE(has(text_of(seen), "test/never"));
}

TEST(explore, tells_of_each_seed_that_is_done) {
  std::vector<std::uint64_t> done;
  explore_options options;
  options.progress = [&](std::uint64_t n) { done.push_back(n); };
  (void)explore(3, ordered, options);
  EXPECT_EQ(done, (std::vector<std::uint64_t>{1, 2, 3}));
}

TEST(explore, ends_its_text_with_the_command_that_repeats_it) {
  const std::string text = text_of(explore(5, throwing), "my_test --seed {}");
  EXPECT_TRUE(has(text, "seed 1 failed: thrown: of its own\n")) << text;
  EXPECT_TRUE(text.ends_with("\nmy_test --seed 1\n")) << text;
  std::ostringstream printed;
  printed << explore(5, throwing);
  EXPECT_TRUE(has(printed.str(), "of its own"));
}

TEST(explore, shows_the_end_of_a_trace_that_is_long) {
  exploration seen;
  std::string trace = "0";
  for (int i = 1; i < 500; ++i) trace += "\n" + std::to_string(i);
  seen.failures.push_back({7, "race", "two works", trace});
  const std::string text = text_of(seen);
  EXPECT_TRUE(has(text, "(380 earlier lines left out)\n380\n")) << text;
  EXPECT_TRUE(text.ends_with("\n499\n")) << text;
}

TEST(explore, of_no_seeds_runs_nothing) {
  bool ran = false;
  const exploration seen = explore(0, [&](device_ref) { ran = true; });
  EXPECT_FALSE(ran);
  EXPECT_EQ(seen.seeds, 0U);
}

}  // namespace
}  // namespace reprise::test
