// bench sim: what it says of itself. Its figures are not asserted, only what was counted.
#include <gtest/gtest.h>

#include "bench/sim/checks_cost.hpp"
#include "bench/sim/sim_bench.hpp"
#include "reprise/base/error.hpp"

namespace reprise::bench {
namespace {

const progress silent = [](std::string_view, std::size_t, std::size_t) {};

TEST(sim_bench, runs_as_many_operations_both_ways_and_finds_no_fault) {
  const sim_bench_report report = run_sim_bench({.operations = 500, .seeds = 2}, silent);
  EXPECT_EQ(report.findings, 0U);
  EXPECT_EQ(report.failure(), "");
  EXPECT_GE(report.watched.operations, 1000U);
  EXPECT_EQ(report.watched.operations, report.unwatched.operations);
  EXPECT_EQ(report.watched.operations_per_second.count, 2U);
  EXPECT_EQ(report.unwatched.operations_per_second.count, 2U);
}

TEST(sim_bench, refuses_to_measure_nothing) {
  EXPECT_THROW(run_sim_bench({.operations = 0}, silent), usage_error);
  EXPECT_THROW(run_sim_bench({.seeds = 0}, silent), usage_error);
}

TEST(checks_cost, of_a_command_that_gives_no_figures_is_refused) {
  checks_cost_options how;
  how.checked = "/bin/true";
  how.unchecked = "/bin/true";
  EXPECT_THROW(measure_checks(how, silent), usage_error);
}

}  // namespace
}  // namespace reprise::bench
