// What `bench train` runs and counts, and that its own checks bite. Never how long it took.
#include "bench/train/train_bench.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "reprise/base/error.hpp"
#include "tests/support/devices.hpp"

namespace reprise::bench {
namespace {

class train_bench_test : public ::testing::TestWithParam<std::string> {
 protected:
  train_bench_report run(const train_bench_options& options) {
    return run_train_bench(opened, *counts, options, tell);
  }

  std::shared_ptr<call_counts> counts = std::make_shared<call_counts>();
  device opened = open_device(GetParam(), {.counts = counts});
  std::size_t told = 0;
  progress tell = [this](std::string_view, std::size_t, std::size_t) { ++told; };
};

INSTANTIATE_TEST_SUITE_P(devices, train_bench_test, ::testing::ValuesIn(test::devices_under_test()),
                         [](const auto& p) { return test::test_name(p.param); });

TEST_P(train_bench_test, every_way_launches_what_was_planned_and_ends_with_the_eager_weights) {
  const train_bench_report report = run({.batches = {3, 5}, .layers = 3, .width = 8, .steps = 2});
  EXPECT_EQ(report.failure(), "");
  EXPECT_GT(told, 0U);
  ASSERT_EQ(report.sizes.size(), 2U);
  for (const train_size& size : report.sizes) {
    std::vector<std::string> ways;
    std::vector<double> launches;
    for (const train_row& row : size.rows) {
      EXPECT_TRUE(row.equal) << row.way;
      EXPECT_EQ(row.step_us.count, 2U);
      EXPECT_FALSE(row.limit_us) << "limits are for 24 layers of 256";
      ways.push_back(row.way);
      launches.push_back(row.host.per_call(seam_call::launch));
    }
    EXPECT_EQ(ways, (std::vector<std::string>{eager_way, pairs_way, heads_way, pair_way, chain_way,
                                              whole_way}));
    EXPECT_EQ(launches, (std::vector<double>{0, 8, 6, 4, 1, 1}));
    // An eager backward runs its forward again.
    EXPECT_GT(size.rows.front().host.per_call(seam_call::kernel), static_cast<double>(size.nodes));
    // Of a layer: a product, a norm with its GELU, and four for their gradients, but that of x; two
    // of the loss, the update, and what brings x and the targets.
    EXPECT_GE(size.nodes, 6U * 3 - 1 + 3 + 2);
    EXPECT_LT(size.nodes, 8U * 3 - 1 + 3 + 2);
  }
}

TEST(train_bench_report_test, a_way_with_other_weights_or_other_calls_fails_it) {
  train_row row{.way = "one pair", .host = {}, .step_us = {}, .limit_us = {}, .equal = true};
  row.host.time.us.count = 2;
  row.host.planned = {.launches = 4};
  row.host.made[static_cast<std::size_t>(seam_call::launch)] = 8;
  train_bench_report report{.sizes = {{.shape = {.batch = 32}, .rows = {row}}}};
  EXPECT_EQ(report.failure(), "");
  report.sizes[0].rows[0].equal = false;
  EXPECT_NE(report.failure().find("batch 32, one pair: the weights are not those"),
            std::string::npos);
  report.sizes[0].rows[0].equal = true;
  report.sizes[0].rows[0].host.made[static_cast<std::size_t>(seam_call::kernel)] = 1;
  EXPECT_NE(report.failure(), "");
}

TEST(train_bench_report_test, a_limit_over_the_whole_step_is_judged_by_the_difference) {
  const train_row row{.way = "one pair",
                      .host = {},
                      .step_us = {.median = 470},
                      .limit_us = 20,
                      .limit_is_over_the_whole = true};
  EXPECT_EQ(row.within({.median = 450}), true);
  EXPECT_EQ(row.within({.median = 449}), false);
}

TEST(train_bench_options_test, that_make_no_run_are_refused_by_name) {
  const auto counts = std::make_shared<call_counts>();
  const device cpu = open_device("cpu", {.counts = counts});
  const auto refused = [&](const train_bench_options& options) -> std::string {
    try {
      run_train_bench(cpu, *counts, options, [](std::string_view, std::size_t, std::size_t) {});
    } catch (const usage_error& error) {
      return error.what();
    }
    return "nothing was refused";
  };
  EXPECT_EQ(refused({.batches = {}}), "--batch must be whole numbers, such as 32,512");
  EXPECT_EQ(refused({.batches = {0}}), "--batch must be a whole number from 1 to 65536");
  EXPECT_EQ(refused({.layers = 1}), "--layers must be a whole number from 2 to 96");
  EXPECT_EQ(refused({.steps = 0}), "--steps must be a whole number from 1 to 1000000");
}

}  // namespace
}  // namespace reprise::bench
