// What `bench cache` runs and counts, and that its own checks bite. Never how long it took.
#include "bench/cache/cache_bench.hpp"

#include <gtest/gtest.h>

#include "bench/measure/resident.hpp"
#include "reprise/base/error.hpp"
#include "tests/support/devices.hpp"

namespace reprise::bench {
namespace {

class cache_bench_test : public ::testing::TestWithParam<std::string> {
 protected:
  device opened = test::open_for_test(GetParam());
  std::size_t told = 0;
  progress tell = [this](std::string_view, std::size_t, std::size_t) { ++told; };
};

INSTANTIATE_TEST_SUITE_P(devices, cache_bench_test, ::testing::ValuesIn(test::plain_devices()),
                         [](const auto& p) { return test::test_name(p.param); });

TEST_P(cache_bench_test, every_call_is_answered_as_planned_and_every_figure_has_its_floor) {
  const cache_bench_report report = run_cache_bench(
      opened, {.nodes = {3, 10}, .recordings = 7, .repeats = 4, .captures = 2, .cycles = 20}, tell);
  const bool gpu = GetParam() != "cpu";
  EXPECT_EQ(report.failure(), "");
  EXPECT_EQ(report.bare, gpu);
  std::vector<std::string> ways;
  for (const way_counts& one : report.keys.counts) {
    ways.push_back(one.what);
    EXPECT_EQ(one.calls, 8U) << one.what << ": four rounds of comparing, four measured";
    EXPECT_TRUE(one.equal) << one.what;
  }
  EXPECT_EQ(ways, (std::vector<std::string>{"eager", "eager, one staged block", "hit",
                                            "hit, one staged block", "miss, not prepared",
                                            "miss, not admitted yet", "miss, over budget"}));
  ASSERT_EQ(report.keys.figures.size(), 5U);
  for (const call_figure& figure : report.keys.figures) {
    SCOPED_TRACE(figure.what);
    EXPECT_EQ(figure.us.count, 4U);
    const bool has_floor = gpu || figure.floor == "eager";
    EXPECT_EQ(figure.floor_us.count, has_floor ? 4U : 0U);
    EXPECT_EQ(figure.adds_us().has_value(), has_floor);
    EXPECT_EQ(figure.within().has_value(), has_floor && figure.limit_us.has_value());
  }
  EXPECT_EQ(report.keys.prepare.us.count, 7U);
  ASSERT_EQ(report.captures.rows.size(), 2U);
  for (const capture_row& row : report.captures.rows) {
    for (const spread* phase :
         {&row.warm_up, &row.in_capture, &row.instantiation, &row.first_replay, &row.total}) {
      EXPECT_EQ(phase->count, 2U) << row.nodes;
    }
    EXPECT_EQ(row.floor.count, gpu ? 2U : 0U);
  }
  ASSERT_EQ(report.captures.figures.size(), 2U);
  EXPECT_EQ(report.captures.figures[1].what, "drop_stale, 7 dropped");
  EXPECT_EQ(report.cycles.captured, 20U);
  EXPECT_EQ(report.cycles.warm, 10U);
  EXPECT_GT(told, 0U);
}

TEST_P(cache_bench_test, a_thousand_warm_cycles_and_as_many_more_grow_nothing) {
  stream work{opened};
  pool memory{opened, "test"};
  const cycle_report report = run_cycles(memory, work, 3, 2000, tell);
  EXPECT_EQ(report.failure(), "");
  EXPECT_EQ(report.warm, warm_up_cycles);
  EXPECT_EQ(report.captured, 2000U);
  EXPECT_EQ(report.kept, 8U);
  EXPECT_EQ(report.evicted, 1992U);
  EXPECT_LE(report.own_growth(), growth_limit);
  EXPECT_GT(report.at_end.budget, 0U);
}

TEST_P(cache_bench_test, options_that_say_nothing_are_refused) {
  for (const cache_bench_options& wrong :
       {cache_bench_options{.nodes = {}}, cache_bench_options{.nodes = {0}},
        cache_bench_options{.nodes = {10, 100'001}}, cache_bench_options{.recordings = 0},
        cache_bench_options{.repeats = 0}, cache_bench_options{.captures = 0},
        cache_bench_options{.cycles = 1}}) {
    EXPECT_THROW(run_cache_bench(opened, wrong, tell), usage_error);
  }
  EXPECT_EQ(told, 0U);
}

TEST(call_figure, is_within_its_limit_by_what_it_adds_to_its_floor) {
  call_figure figure{"hit", "bare", {2.5, 2, 3, 9}, {1.5, 1, 2, 9}, 1.0};
  EXPECT_EQ(figure.within(), true);
  figure.us.median = 2.6;
  EXPECT_EQ(figure.within(), false);
  figure.floor_us = {};
  EXPECT_EQ(figure.within(), std::nullopt) << "no floor, no verdict";
  figure.floor_us = {1.5, 1, 2, 9};
  figure.is_judged = false;
  EXPECT_EQ(figure.within(), std::nullopt) << "of another kind of device";
  figure.is_judged = true;
  figure.paired_us = 0.9;
  EXPECT_EQ(figure.within(), true) << "pairs say more than medians apart";
  figure.limit_us.reset();
  EXPECT_EQ(figure.within(), std::nullopt) << "no limit, no verdict";
}

class cache_bench_checks : public ::testing::Test {
 protected:
  static way_counts hit() { return {"hit", 8, 8, 0, true, true}; }
  static way_counts miss() { return {"miss", 8, 0, 8, false, true}; }
  static std::string failure_of(const way_counts& one) {
    key_costs costs;
    costs.counts = {one};
    return costs.failure();
  }
  static cycle_report flat() {
    cycle_report report;
    report.cycles = 2000;
    report.warm = 1000;
    report.captured = 2000;
    report.evicted = 1992;
    report.kept = 8;
    report.device_is_apart = true;
    report.after_warm_up = report.at_end = {1 << 20, 1 << 20, 1 << 20, 1 << 10};
    return report;
  }
};

TEST_F(cache_bench_checks, a_run_as_planned_has_no_failure) {
  EXPECT_EQ(failure_of(hit()), "");
  EXPECT_EQ(failure_of(miss()), "");
  EXPECT_EQ(flat().failure(), "");
}

TEST_F(cache_bench_checks, a_hit_that_ran_eagerly_and_a_miss_that_was_replayed_are_told) {
  way_counts one = hit();
  one.replayed = 7;
  one.eager = 1;
  EXPECT_NE(failure_of(one).find("hit"), std::string::npos) << failure_of(one);
  one = miss();
  one.eager = 7;
  one.replayed = 1;
  EXPECT_NE(failure_of(one), "");
}

TEST_F(cache_bench_checks, other_bits_are_told) {
  way_counts one = hit();
  one.equal = false;
  EXPECT_NE(failure_of(one).find("differs"), std::string::npos);
}

TEST_F(cache_bench_checks, a_cycle_that_recorded_nothing_is_told) {
  cycle_report report = flat();
  report.captured = 1999;
  EXPECT_NE(report.failure().find("1999"), std::string::npos) << report.failure();
  report = flat();
  report.evicted = 1000;
  EXPECT_NE(report.failure(), "");
}

TEST_F(cache_bench_checks, growth_beyond_the_limit_is_told_and_shrinking_is_not) {
  for (std::size_t held_bytes::*one :
       {&held_bytes::process, &held_bytes::device, &held_bytes::own}) {
    cycle_report report = flat();
    report.at_end.*one += growth_limit;
    EXPECT_EQ(report.failure(), "");
    report.at_end.*one += 1;
    EXPECT_NE(report.failure().find("grew"), std::string::npos);
    report.at_end.*one = 0;
    EXPECT_EQ(report.failure(), "");
  }
}

TEST_F(cache_bench_checks, memory_of_the_whole_host_says_nothing_of_a_device) {
  cycle_report report = flat();
  report.device_is_apart = false;
  report.at_end.device += 2 * growth_limit;
  EXPECT_EQ(report.failure(), "");
  EXPECT_EQ(report.device_growth(), 0U);
}

TEST_F(cache_bench_checks, a_simulated_gpu_may_note_what_it_ran) {
  cycle_report report = flat();
  report.process_is_held = false;
  report.at_end.process += 2 * growth_limit;
  EXPECT_EQ(report.failure(), "");
  report.at_end.own += 2 * growth_limit;
  EXPECT_NE(report.failure(), "");
}

TEST(resident_bytes, sees_memory_that_is_touched) {
  const std::size_t before = resident_bytes();
  const std::vector<char> touched(std::size_t{64} << 20, 'x');
  EXPECT_GE(resident_bytes(), before + touched.size() / 2);
}

}  // namespace
}  // namespace reprise::bench
