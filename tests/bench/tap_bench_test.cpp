// What `bench tap` runs and counts, and that its own checks bite. Never how long it took.
#include "bench/tap/tap_bench.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "bench/tap/block_step.hpp"
#include "bench/tap/layer.hpp"
#include "reprise/base/error.hpp"
#include "tests/support/devices.hpp"

namespace reprise::bench {
namespace {

kernel_registry kernels_with_layers() {
  kernel_registry kernels = builtin_kernels();
  add_tap_kernels(kernels);
  return kernels;
}

class tap_bench_test : public ::testing::TestWithParam<std::string> {
 protected:
  bool is_gpu() const { return GetParam() != "cpu"; }

  device opened = open_device(GetParam(), {.threads = 1}, kernels_with_layers());
  std::size_t told = 0;
  progress tell = [this](std::string_view, std::size_t, std::size_t) { ++told; };
};

INSTANTIATE_TEST_SUITE_P(devices, tap_bench_test, ::testing::ValuesIn(test::plain_devices()),
                         [](const auto& p) { return test::test_name(p.param); });

tap_bench_options small() {
  tap_bench_options options;
  options.layers = 4;
  options.layer_mib = 1;
  options.kib = {8, 16};
  options.repeats = 2;
  options.pairs = 7;
  options.drain_mib = 2;
  options.drains = 2;
  options.producer_mib = 1;
  options.plans = 5;
  return options;
}

std::vector<std::string> rows_in(const placement& of) {
  std::vector<std::string> all;
  for (const placement_row& row : of.rows) all.push_back(row.device.what);
  return all;
}

TEST_P(tap_bench_test, every_way_publishes_what_it_planned_and_stands_beside_its_floor) {
  const tap_bench_report report = run_tap_bench(opened, small(), tell);
  EXPECT_EQ(report.failure(), "");
  EXPECT_EQ(report.timed_by_events, is_gpu());
  EXPECT_GT(told, 0U);
  ASSERT_EQ(report.placements.size(), 4U);
  EXPECT_EQ(rows_in(report.placements[0]),
            (std::vector<std::string>{"all on", "all on, 8 in a row", "all on, in line",
                                      "all on, no drain thread", "all on, full ring", "none on"}));
  EXPECT_EQ(rows_in(report.placements[3]), (std::vector<std::string>{"all on", "all on, in line"}));
  EXPECT_EQ(report.placements[3].shape.buffers, 2);
  EXPECT_EQ(report.placements[3].shape.residual_bytes, 16U << 10);
  for (const placement& one : report.placements) {
    for (const placement_row& row : one.rows) {
      SCOPED_TRACE(row.device.what);
      const bool paired = row.device.what == "none on";
      EXPECT_EQ(row.device.us.count, paired ? 7U : 2U);
      EXPECT_EQ(row.device.floor_us.count, row.device.us.count);
      EXPECT_EQ(row.from_idle.has_value(), row.device.what != "all on, 8 in a row");
      EXPECT_EQ(row.device_adds.has_value(), paired);
      EXPECT_EQ(row.device.is_judged, is_gpu() || !row.from_idle);
    }
  }
  ASSERT_EQ(report.drains.size(), 2U);
  EXPECT_EQ(report.drains[0].records, 128U);
  EXPECT_EQ(report.drains[1].records, 2U);
  for (const drain_rates& one : report.drains) {
    ASSERT_EQ(one.figures.size(), 5U);
    for (const rate_figure& figure : one.figures) {
      EXPECT_EQ(figure.us.count, 2U) << figure.what;
      EXPECT_EQ(figure.floor_us.count, 2U);
      EXPECT_EQ(figure.bytes, 2U << 20);
    }
  }
  ASSERT_EQ(report.producers.size(), 2U);
  EXPECT_EQ(report.producers[0].node.bytes, 2U << 20);
  EXPECT_TRUE(report.producers[0].node.least_share);
  EXPECT_EQ(report.producers[1].node.most_us, small_producer_limit_us);
  EXPECT_EQ(report.producers[1].node.us.count, 2U);
  ASSERT_EQ(report.planning.size(), 3U);
  for (const planning_figure& figure : report.planning) EXPECT_EQ(figure.us.count, 5U);
}

TEST_P(tap_bench_test, all_that_is_published_is_counted_and_looked_at) {
  const tap_bench_report report = run_tap_bench(opened, small(), tell);
  std::map<std::string, watched_counts> of;
  for (const watched_counts& one : report.placements[0].runs) of[one.what] = one;
  // Three calls and one more are looked at; a round calls twice, and eight in a row.
  const watched_counts& on = of.at("all on");
  EXPECT_EQ(on.calls, 4U + 2 * 10);
  EXPECT_EQ(on.measured, 2U * 10 + 1) << "the last look is at a replay too";
  EXPECT_EQ(on.published, on.calls * 4);
  EXPECT_EQ(on.seen, on.published);
  EXPECT_EQ(on.compared, 4U * 4);
  const watched_counts& off = of.at("none on");
  EXPECT_EQ(off.calls, 3U + 3 + 7 * 2 + 1);
  EXPECT_EQ(off.published, 3U * 4) << "before it was turned off";
  const watched_counts& full = of.at("all on, full ring");
  EXPECT_EQ(full.planned + full.dropped, full.calls * 4);
  EXPECT_GE(full.dropped, full.measured * 4);
  EXPECT_EQ(full.seen, full.planned) << "once the sink was let go";
  for (const watched_counts* const one : report.runs()) {
    EXPECT_EQ(one->eager, 0U) << one->what;
    EXPECT_EQ(one->replayed, one->measured) << one->what;
    EXPECT_GT(one->measured, 0U) << one->what;
    EXPECT_EQ(one->waits, 0U) << one->what;
  }
}

TEST_P(tap_bench_test, options_that_say_nothing_are_refused) {
  const auto refused = [&](auto set) {
    tap_bench_options wrong = small();
    set(wrong);
    EXPECT_THROW(run_tap_bench(opened, wrong, tell), usage_error);
  };
  refused([](tap_bench_options& o) { o.layers = 0; });
  refused([](tap_bench_options& o) { o.layer_mib = -1; });
  refused([](tap_bench_options& o) { o.kib = {}; });
  refused([](tap_bench_options& o) { o.kib = {8, 0}; });
  refused([](tap_bench_options& o) { o.buffers = {3, 1}; });
  refused([](tap_bench_options& o) { o.plans = 0; });
  EXPECT_EQ(told, 0U);
}

// A step whose records or output are not what its owner says they must be.
class tap_bench_checks : public ::testing::Test {
 protected:
  static monitor_options room_for_a_step() {
    monitor_options how;
    how.ring_bytes = how.staging_bytes = 4 * 256;
    how.slots = 4;
    how.flights = 2;
    how.most_points = 4;
    how.thread = false;
    return how;
  }
  std::string failure_of(watched_run& run) {
    run.check();
    run.begin_measuring();
    run.check();
    return run.finish().failure();
  }

  device opened = open_device("cpu", {.threads = 1}, kernels_with_layers());
  stream work{opened};
  pool memory{opened, "test"};
  block_source source{memory, work, 4 * 256};
  block_step blocks{source, 4, 256, block_use::marks};
};

TEST_F(tap_bench_checks, a_run_as_planned_has_no_failure) {
  watched_run run{"right", work, blocks.marked(), room_for_a_step()};
  EXPECT_EQ(failure_of(run), "");
}

TEST_F(tap_bench_checks, a_record_with_other_bits_is_told) {
  const block_step others{source, 3, 256, block_use::marks};
  marked_step wrong = blocks.marked();
  wrong.is_right = others.marked().is_right;  // which knows no fourth block
  watched_run run{"wrong records", work, wrong, room_for_a_step()};
  const std::string told = failure_of(run);
  EXPECT_NE(told.find("of 8 records that were looked at, where 8 were to be, 2 have other bits"),
            std::string::npos)
      << told;
}

TEST_F(tap_bench_checks, another_output_is_told) {
  marked_step wrong = blocks.marked();
  wrong.has_right_output = [](stream_ref, const step_result&) { return false; };
  watched_run run{"wrong output", work, wrong};
  EXPECT_NE(failure_of(run).find("wrong output: the output"), std::string::npos);
}

TEST_F(tap_bench_checks, a_wait_for_room_is_told) {
  watched_run run{"waiting", work, blocks.marked(), room_for_a_step()};
  run.check();
  run.call();
  run.call();  // without a flush between
  EXPECT_NE(run.finish().failure().find("1 waited for room"), std::string::npos);
}

TEST_F(tap_bench_checks, a_step_that_ran_eagerly_is_told) {
  monitor_options too_little = room_for_a_step();
  too_little.slots = 3;
  watched_run run{"eager", work, blocks.marked(), too_little};
  EXPECT_NE(failure_of(run).find("ran eagerly"), std::string::npos);
}

TEST_F(tap_bench_checks, each_count_that_is_off_is_told) {
  watched_counts right{.what = "x", .calls = 4, .on = 4, .measured = 3, .replayed = 3};
  right.points = 2;
  right.planned = right.published = right.records = right.seen = 8;
  right.has_sink = true;
  EXPECT_EQ(right.failure(), "");
  for (std::uint64_t watched_counts::*one :
       {&watched_counts::eager, &watched_counts::replayed, &watched_counts::planned,
        &watched_counts::published, &watched_counts::dropped, &watched_counts::lost,
        &watched_counts::records, &watched_counts::seen, &watched_counts::compared,
        &watched_counts::wrong, &watched_counts::waits}) {
    watched_counts off = right;
    ++(off.*one);
    EXPECT_NE(off.failure(), "");
  }
  watched_counts dropping = right;
  dropping.drops = true;
  EXPECT_NE(dropping.failure(), "") << "nothing was dropped";
  dropping.planned = dropping.published = dropping.records = dropping.seen = 2;
  dropping.dropped = 6;
  EXPECT_EQ(dropping.failure(), "");
}

TEST(planning_figure, a_plan_that_is_not_right_is_told) {
  planning_figure figure = measure_planning(1).front();
  EXPECT_EQ(figure.failure(), "");
  --figure.right;
  EXPECT_NE(figure.failure().find("planning, last rows"), std::string::npos);
}

TEST(all_on_limit, is_for_the_step_that_it_was_measured_with) {
  const auto of = [](int layers, std::size_t mib, std::size_t kib, int buffers) {
    return all_on_limit_us({layers, mib << 20, kib << 10, buffers});
  };
  EXPECT_EQ(of(36, 32, 8, 3), 7.0);
  EXPECT_EQ(of(36, 128, 64, 3), 10.0);
  EXPECT_EQ(of(36, 32, 256, 3), 13.0);
  for (const auto& none :
       {of(35, 32, 8, 3), of(36, 31, 8, 3), of(36, 32, 9, 3), of(36, 32, 8, 2)}) {
    EXPECT_EQ(none, std::nullopt);
  }
}

TEST(rate_figure, keeps_each_of_its_limits_or_is_not_judged) {
  rate_figure figure;
  figure.bytes = 1'000'000;
  figure.us = {20, 19, 21, 9};  // 50 GB/s
  figure.floor_us = {16, 15, 17, 9};
  EXPECT_DOUBLE_EQ(*figure.gb_s(), 50);
  EXPECT_DOUBLE_EQ(*figure.share(), 0.8);
  figure.is_judged = true;
  EXPECT_EQ(figure.within(), std::nullopt) << "no limit, no verdict";
  figure.least_gb_s = 50;
  EXPECT_EQ(figure.within(), true);
  figure.least_share = 0.81;
  EXPECT_EQ(figure.within(), false);
  figure.least_share = 0.79;
  figure.most_us = 19;
  EXPECT_EQ(figure.within(), false);
  figure.most_us = 20;
  EXPECT_EQ(figure.within(), true);
  figure.us.median = -0.1;  // a difference that is less than noise
  EXPECT_EQ(figure.gb_s(), std::nullopt);
  EXPECT_EQ(figure.within(), false);
  figure.is_judged = false;
  EXPECT_EQ(figure.within(), std::nullopt);
}

}  // namespace
}  // namespace reprise::bench
