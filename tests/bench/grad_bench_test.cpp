// What `bench grad` runs and counts, and that its own checks bite. Never how long it took.
#include "bench/grad/grad_bench.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "bench/measure/silence.hpp"
#include "bench/replay/bare_chain.hpp"
#include "reprise/base/error.hpp"
#include "tests/support/devices.hpp"

namespace reprise::bench {
namespace {

constexpr int some_rounds = 4;
constexpr int some_steps = 3;

class grad_bench_test : public ::testing::TestWithParam<std::string> {
 protected:
  grad_bench_report run(const grad_bench_options& options) {
    return run_grad_bench(opened, *counts, options, tell);
  }

  std::shared_ptr<call_counts> counts = std::make_shared<call_counts>();
  device opened = open_device(GetParam(), {.counts = counts});
  stream work{opened};
  pool memory{opened, "test"};
  std::size_t told = 0;
  progress tell = [this](std::string_view, std::size_t, std::size_t) { ++told; };
};

INSTANTIATE_TEST_SUITE_P(devices, grad_bench_test, ::testing::ValuesIn(test::devices_under_test()),
                         [](const auto& p) { return test::test_name(p.param); });

std::uint64_t made(const grad_figure& figure, seam_call kind) {
  return figure.made[static_cast<std::size_t>(kind)];
}

TEST_P(grad_bench_test, every_call_asks_for_what_was_planned_and_has_the_bits_of_the_eager_run) {
  const grad_bench_report report =
      run({.rounds = some_rounds, .frames = {2, 9}, .ops = 5, .steps = some_steps});
  const bool gpu = opened.name().starts_with("cuda");
  EXPECT_EQ(report.failure(), "");
  EXPECT_EQ(report.bare, gpu);
  std::vector<std::string> names;
  for (const grad_figure* one : report.figures()) {
    SCOPED_TRACE(one->time.what);
    names.push_back(one->time.what);
    EXPECT_EQ(one->time.us.count, 4U);
    const bool has_floor = gpu || !one->time.floor.starts_with("bare");
    EXPECT_EQ(one->time.floor_us.count, has_floor ? 4U : 0U);
    EXPECT_EQ(one->time.within().has_value(), has_floor && one->time.limit_us.has_value());
  }
  EXPECT_EQ(names, (std::vector<std::string>{"plain replay, 4 nodes",
                                             "forward replay, 1 input",
                                             "backward replay, 1 gradient cloned",
                                             "backward replay, 1 gradient moved",
                                             "plain replay, 10 nodes",
                                             "forward replay, 4 inputs",
                                             "backward replay, 4 gradients cloned",
                                             "backward replay, 4 gradients moved",
                                             "plain replay, 34 nodes",
                                             "forward replay, 16 inputs",
                                             "backward replay, 16 gradients cloned",
                                             "backward replay, 16 gradients moved",
                                             "stale backward",
                                             "eager forward, hold",
                                             "inference replay",
                                             "forward replay, 2 frames",
                                             "forward replay, 9 frames",
                                             "forward replay behind all, 2 frames",
                                             "forward replay behind all, 9 frames",
                                             "first backward, all voided, 2 frames",
                                             "first backward, all voided, 9 frames"}));
  for (const op_counts* one : report.ops()) EXPECT_TRUE(one->equal) << one->what;
  EXPECT_GT(told, 0U);
}

TEST_P(grad_bench_test, a_forward_replay_is_one_launch_and_no_copy_whatever_it_is_given) {
  const silence eager_runs_are_planned;
  const call_costs costs =
      measure_calls(memory, {work, *counts}, native_stream_of(work), some_rounds, tell);
  int seen = 0;
  for (const grad_figure& one : costs.figures) {
    if (!one.time.what.starts_with("forward replay, ")) continue;
    SCOPED_TRACE(one.time.what);
    ++seen;
    EXPECT_EQ(made(one, seam_call::launch), 4U);
    EXPECT_EQ(made(one, seam_call::copy), 0U) << "no input, no parameter, and no output";
    for (const seam_call none : {seam_call::kernel, seam_call::fill, seam_call::host_call,
                                 seam_call::allocate, seam_call::synchronize}) {
      EXPECT_EQ(made(one, none), 0U) << name_of(none);
    }
  }
  EXPECT_EQ(seen, 3) << "of 1, 4 and 16 inputs";
}

TEST_P(grad_bench_test, a_training_step_launches_each_layer_twice_for_each_of_its_forwards) {
  const silence eager_runs_are_planned;
  const net_costs costs =
      measure_nets(memory, {work, *counts}, native_stream_of(work), some_steps, tell);
  ASSERT_EQ(costs.rows.size(), 4U);
  for (const net_row& row : costs.rows) {
    SCOPED_TRACE(row.host.time.what);
    const bool records = row.host.time.what.starts_with("replayed");
    EXPECT_EQ(row.host.time.us.count, 3U);
    EXPECT_EQ(row.step_us.count, 3U);
    const auto forwards = static_cast<std::uint64_t>(row.forwards);
    EXPECT_EQ(made(row.host, seam_call::launch), records ? 3 * 16 * forwards : 0U);
    EXPECT_EQ(row.layers.seen.forward_capture, records ? 8 * forwards : 0U);
    EXPECT_EQ(row.layers.seen.stale_replay, 0U);
    EXPECT_EQ(row.layers.seen.forwards(), 5 * 8 * forwards) << "two steps go ahead";
    EXPECT_TRUE(row.layers.equal);
  }
}

TEST_P(grad_bench_test, nothing_is_left_of_ops_that_are_destroyed) {
  const op_lives_report report = run_op_lives(memory, work, 40, tell);
  EXPECT_EQ(report.failure(), "");
  EXPECT_EQ(report.alive.listed_ops, 40U);
  EXPECT_EQ(report.alive.frames, 40U);
  EXPECT_GE(report.alive.pools, 2U);
  EXPECT_GT(report.alive.budget_bytes, 0U);
  EXPECT_EQ(report.at_end.listed_ops, 0U);
  EXPECT_EQ(report.at_end.pools, 0U);
  EXPECT_EQ(report.at_end.budget_bytes, 0U);
  EXPECT_EQ(report.own_growth(), 0U);
}

TEST_P(grad_bench_test, options_that_say_nothing_are_refused) {
  for (const grad_bench_options& wrong :
       {grad_bench_options{.rounds = 0}, grad_bench_options{.frames = {}},
        grad_bench_options{.frames = {10, 1}}, grad_bench_options{.frames = {100'001}},
        grad_bench_options{.ops = 0}, grad_bench_options{.steps = 0}}) {
    EXPECT_THROW(run(wrong), usage_error);
  }
  EXPECT_EQ(told, 0U);
}

class grad_bench_checks : public ::testing::Test {
 protected:
  static grad_figure forward() {
    grad_figure figure;
    figure.time.what = "forward replay";
    figure.time.us = {2, 1, 3, 4};
    figure.planned = {1, 1, 0};
    figure.made[static_cast<std::size_t>(seam_call::launch)] = 4;
    figure.made[static_cast<std::size_t>(seam_call::copy)] = 4;
    return figure;
  }
  static op_counts replayed() {
    op_counts counts;
    counts.what = "cloned";
    counts.planned.forward_capture = counts.seen.forward_capture = 1;
    counts.planned.forward_replay = counts.seen.forward_replay = 7;
    return counts;
  }
  static op_lives_report gone() {
    op_lives_report report;
    report.ops = 5;
    report.captured_forwards = report.captured_backwards = 5;
    report.device_is_apart = true;
    report.before = report.after = {1 << 20, 1 << 20, 1 << 20, 0};
    return report;
  }
};

TEST_F(grad_bench_checks, a_run_as_planned_has_no_failure) {
  EXPECT_EQ(forward().failure(), "");
  EXPECT_EQ(replayed().failure(), "");
  EXPECT_EQ(gone().failure(), "");
}

TEST_F(grad_bench_checks, one_copy_launch_or_kernel_more_or_fewer_is_told) {
  for (const seam_call kind : {seam_call::launch, seam_call::copy, seam_call::kernel}) {
    grad_figure figure = forward();
    ++figure.made[static_cast<std::size_t>(kind)];
    EXPECT_NE(figure.failure().find("forward replay"), std::string::npos) << name_of(kind);
  }
  grad_figure figure = forward();
  --figure.made[static_cast<std::size_t>(seam_call::copy)];
  EXPECT_NE(figure.failure(), "");
}

TEST_F(grad_bench_checks, an_eager_forward_a_stale_replay_and_other_bits_are_told) {
  op_counts counts = replayed();
  --counts.seen.forward_replay;
  ++counts.seen.eager_forward[static_cast<std::size_t>(eager_cause::hold)];
  EXPECT_NE(counts.failure().find("hold 1"), std::string::npos) << counts.failure();
  counts = replayed();
  counts.seen.stale_replay = 1;
  EXPECT_NE(counts.failure(), "");
  counts = replayed();
  counts.seen.stale_us = 12;
  EXPECT_EQ(counts.failure(), "") << "a time is no count";
  counts.equal = false;
  EXPECT_NE(counts.failure().find("differs"), std::string::npos);
}

TEST_F(grad_bench_checks, whatever_an_op_leaves_behind_is_told) {
  for (std::size_t list_lengths::*one : {&list_lengths::listed_ops, &list_lengths::frames,
                                         &list_lengths::pools, &list_lengths::budget_bytes}) {
    op_lives_report report = gone();
    report.at_end.*one = 1;
    EXPECT_NE(report.failure().find("destroyed"), std::string::npos);
  }
  op_lives_report report = gone();
  report.captured_backwards = 4;
  EXPECT_NE(report.failure().find("4 backwards"), std::string::npos) << report.failure();
}

TEST_F(grad_bench_checks, growth_beyond_the_limit_is_told_and_shrinking_is_not) {
  for (std::size_t held_bytes::*one :
       {&held_bytes::process, &held_bytes::device, &held_bytes::own}) {
    op_lives_report report = gone();
    report.after.*one += growth_limit;
    EXPECT_EQ(report.failure(), "");
    report.after.*one += 1;
    EXPECT_NE(report.failure().find("grew"), std::string::npos);
    report.after.*one = 0;
    EXPECT_EQ(report.failure(), "");
  }
  op_lives_report report = gone();
  report.process_is_held = report.device_is_apart = false;
  report.after.process = report.after.device = 5 * growth_limit;
  EXPECT_EQ(report.failure(), "") << "a simulated GPU may note what it ran";
}

TEST_F(grad_bench_checks, forwards_are_the_same_at_all_frames_where_their_ranges_meet) {
  pool_costs costs;
  costs.rows.resize(2);
  costs.rows[0].forward.time.us = {2, 1, 3, 9};
  costs.rows[1].forward.time.us = {4, 3, 5, 9};
  EXPECT_TRUE(costs.is_same_within_spread());
  costs.rows[1].forward.time.us.p10 = 3.1;
  EXPECT_FALSE(costs.is_same_within_spread());
  std::swap(costs.rows[0], costs.rows[1]);
  EXPECT_FALSE(costs.is_same_within_spread());
}

}  // namespace
}  // namespace reprise::bench
