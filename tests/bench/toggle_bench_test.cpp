// What `bench toggle` runs and counts, and that its own checks bite. Never how long it took.
#include "bench/toggle/toggle_bench.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "bench/tap/layer.hpp"
#include "reprise/base/error.hpp"
#include "tests/support/devices.hpp"

namespace reprise::bench {
namespace {

kernel_registry kernels_for_toggle() {
  kernel_registry kernels = builtin_kernels();
  add_tap_kernels(kernels);
  return kernels;
}

class toggle_bench_test : public ::testing::TestWithParam<std::string> {
 protected:
  bool is_gpu() const { return GetParam() != "cpu"; }

  device opened = open_device(GetParam(), {.threads = 1}, kernels_for_toggle());
  std::size_t told = 0;
  progress tell = [this](std::string_view, std::size_t, std::size_t) { ++told; };
};

INSTANTIATE_TEST_SUITE_P(devices, toggle_bench_test, ::testing::ValuesIn(test::plain_devices()),
                         [](const auto& p) { return test::test_name(p.param); });

toggle_bench_options small_toggle() {
  toggle_bench_options options;
  options.points = {4, 16};
  options.repeats = 3;
  options.pairs = 7;
  options.schedules = 10;
  return options;
}

TEST_P(toggle_bench_test, every_mode_runs_as_planned_and_stands_beside_its_floor) {
  const toggle_bench_report report = run_toggle_bench(opened, small_toggle(), tell);
  EXPECT_EQ(report.failure(), "");
  EXPECT_EQ(report.timed_by_events, is_gpu());
  EXPECT_GT(told, 0U);
  const std::vector<std::pair<std::size_t, std::size_t>> rows{{4, 7},  {16, 7}, {16, 3}, {16, 3},
                                                              {16, 7}, {16, 7}, {16, 7}, {16, 3}};
  ASSERT_EQ(report.all.figures.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const toggle_figure& f = report.all.figures[i];
    SCOPED_TRACE(f.of.what);
    EXPECT_EQ(f.points, rows[i].first);
    EXPECT_EQ(f.of.us.count, rows[i].second);
    EXPECT_EQ(f.of.floor_us.count, rows[i].second);
    EXPECT_EQ(f.of.within().has_value(), is_gpu());
    EXPECT_TRUE(f.of.limit_us);
    EXPECT_EQ(f.adds.has_value(), i != 5) << "all but one are in pairs";
    EXPECT_EQ(f.left_out, 0U);
  }
  EXPECT_EQ(report.all.figures[3].changed_nodes, 2U);
  EXPECT_EQ(report.all.figures[3].of.limit_us, 2 * 1.0 + 2.0);
  ASSERT_EQ(report.all.in_flight.size(), 1U);
  EXPECT_EQ(report.all.in_flight[0].call_us.count, 3U);
  EXPECT_EQ(report.all.in_flight[0].within().has_value(), is_gpu());
}

TEST_P(toggle_bench_test, calls_of_the_driver_are_those_that_are_meant) {
  const toggle_bench_report report = run_toggle_bench(opened, small_toggle(), tell);
  std::map<std::string, switched_counts> of;
  for (const switched_counts& one : report.all.switched) of[one.what] = one;
  ASSERT_EQ(of.size(), 8U);
  for (const auto& [what, one] : of) {
    SCOPED_TRACE(what);
    EXPECT_EQ(one.eager, 0U);
    EXPECT_EQ(one.seen, one.expected);
    EXPECT_GT(one.compared, 0U);
    EXPECT_EQ(one.driver_calls, one.driver_calls_planned);
  }
  const switched_counts& device = of.at("device, 16 points");
  EXPECT_EQ(device.switched.enable_calls + device.switched.copies, 0U);
  // Three changes of two nodes, and three in flight of eight.
  EXPECT_EQ(of.at("host_lazy, 16 points").driver_calls, 3U * 2 + 3 * 8);
  const switched_counts& variants = of.at("variants, 16 points");
  EXPECT_EQ(variants.switched.variants_made, 2U);
  EXPECT_EQ(variants.switched.enable_calls, 0U);
  EXPECT_GT(of.at("host_lazy, switched often, 16 points").switched.switches, 5U);
  EXPECT_EQ(of.at("host_lazy, never switched, 16 points").switched.switches, 0U);
}

TEST_P(toggle_bench_test, options_that_say_nothing_are_refused) {
  const auto refused = [&](auto set) {
    toggle_bench_options wrong = small_toggle();
    set(wrong);
    EXPECT_THROW(run_toggle_bench(opened, wrong, tell), usage_error);
  };
  refused([](toggle_bench_options& o) { o.points = {16, 3}; });
  refused([](toggle_bench_options& o) { o.points = {513}; });
  refused([](toggle_bench_options& o) { o.repeats = -1; });
  refused([](toggle_bench_options& o) { o.pairs = -1; });
  refused([](toggle_bench_options& o) { o.schedules = -1; });
  EXPECT_EQ(told, 0U);
}

TEST(switched_counts, each_one_that_is_off_is_told) {
  switched_counts right;
  right.what = "x";
  right.calls = 4;
  right.measured = right.replayed = 3;
  right.expected = right.planned = right.published = right.seen = 8;
  right.compared = right.compared_expected = 2;
  right.driver_calls = right.driver_calls_planned = 5;
  EXPECT_EQ(right.failure(), "");
  for (std::uint64_t switched_counts::*one :
       {&switched_counts::eager, &switched_counts::replayed, &switched_counts::expected,
        &switched_counts::planned, &switched_counts::published, &switched_counts::lost,
        &switched_counts::dropped, &switched_counts::waits, &switched_counts::seen,
        &switched_counts::misplaced, &switched_counts::compared, &switched_counts::wrong,
        &switched_counts::driver_calls}) {
    switched_counts off = right;
    ++(off.*one);
    EXPECT_NE(off.failure(), "");
  }
  right.equal = false;
  EXPECT_NE(right.failure().find("the output"), std::string::npos);
}

// A run with a set, whose counts are looked at.
class switched_run_test : public ::testing::Test {
 protected:
  device opened = open_device("cpu", {.threads = 1}, kernels_for_toggle());
  stream work{opened};
  pool memory{opened, "test"};
  layer_weights weights{memory, work, 4, 4096};
  layered_step step{memory, work, weights, {4, 4096, 1024, 3}};
  layer_set inner{{false, true, true, false}};
};

TEST_F(switched_run_test, a_timed_call_that_takes_other_calls_of_the_driver_is_told) {
  switched_run run{"off by one", work, step, 4, 1024, toggle_mode::host_lazy};
  run.check();
  run.check();
  run.timed_change(inner, 1);
  EXPECT_NE(
      run.finish().failure().find("took 2 calls of the driver beside their launches, where 1"),
      std::string::npos);
}

// 202 nodes, of which 98 of 100 points were switched: 0.1 us a replay for each, until that has cost
// the 1,010 us of instantiating.
TEST_F(switched_run_test, a_call_that_instantiates_anew_is_no_figure_and_its_calls_are_meant) {
  constexpr std::size_t points = 100;
  constexpr std::size_t off = 98;
  const layer_weights many{memory, work, points, 256};
  const layered_step long_step{memory, work, many, {points, 256, 256, 3}};
  switched_run run{"repaired", work, long_step, points, 256, toggle_mode::host_lazy};
  run.check();
  run.check();
  std::vector<bool> on(points);
  on[3] = on[50] = true;
  EXPECT_TRUE(run.timed_change(layer_set{std::move(on)}, off));
  int figures = 0;
  while (run.timed_call(0) && figures < 1000) {
    run.settle();
    ++figures;
  }
  run.settle();
  EXPECT_EQ(figures, 102);
  EXPECT_TRUE(run.timed_call(0));
  run.check();
  const switched_counts counts = run.finish();
  EXPECT_EQ(counts.failure(), "");
  EXPECT_EQ(counts.repaired, 1U);
  EXPECT_EQ(counts.switched.repairs, 1U);
  EXPECT_EQ(counts.driver_calls, 2 * off + 1);
}

TEST_F(switched_run_test, a_set_has_its_points_and_no_others) {
  EXPECT_EQ(inner.count, 2U);
  EXPECT_EQ(inner.points.text(), "resid_pre:1-2");
  EXPECT_EQ(layer_set({true, false, true, true}).points.text(), "resid_pre:0-0+2-3");
  EXPECT_EQ(layer_set({false, false}).points.text(), "none");
  switched_run run{"a set", work, step, 4, 1024, toggle_mode::host_lazy};
  run.check();
  run.enable(inner);
  run.check();
  run.check();
  const switched_counts counts = run.finish();
  EXPECT_EQ(counts.failure(), "");
  EXPECT_EQ(counts.seen, 4U + 2 * 2);
}

}  // namespace
}  // namespace reprise::bench
