#include "bench/measure/spread.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "bench/measure/median_interval.hpp"

namespace reprise::bench {
namespace {

TEST(spread, figures_are_measurements_whatever_their_order) {
  const spread of = spread_of({9, 1, 8, 2, 7, 3, 6, 4, 5, 10});
  EXPECT_EQ(of.p10, 1);
  EXPECT_EQ(of.median, 5);
  EXPECT_EQ(of.p90, 9);
  EXPECT_EQ(of.count, 10U);
}

TEST(spread, one_measurement_is_every_figure_and_none_is_zero) {
  const spread one = spread_of({3.5});
  EXPECT_EQ(one.p10, 3.5);
  EXPECT_EQ(one.median, 3.5);
  EXPECT_EQ(one.p90, 3.5);
  EXPECT_EQ(spread_of({}).count, 0U);
}

TEST(spread, a_single_outlier_moves_nothing) {
  std::vector<double> measured(99, 2.0);
  measured.push_back(1e9);
  const spread of = spread_of(measured);
  EXPECT_EQ(of.median, 2.0);
  EXPECT_EQ(of.p90, 2.0);
}

TEST(median_interval, ends_at_the_order_statistics_of_a_binomial) {
  // P(B < 2) = 11/1024 and P(B < 3) = 56/1024 for ten tosses.
  const median_interval ten = median_interval_of({9, 1, 8, 2, 7, 3, 6, 4, 5, 10});
  EXPECT_EQ(ten.low, 2);
  EXPECT_EQ(ten.median, 5);
  EXPECT_EQ(ten.high, 9);
  std::vector<double> thousand(1000);
  for (std::size_t i = 0; i < thousand.size(); ++i) thousand[i] = static_cast<double>(i + 1);
  const median_interval many = median_interval_of(thousand);
  EXPECT_EQ(many.low, 469);
  EXPECT_EQ(many.high, 532);
  EXPECT_EQ(many.count, 1000U);
}

TEST(median_interval, of_few_is_all_of_them_and_of_none_is_zero) {
  const median_interval five = median_interval_of({5, 4, 3, 2, 1});
  EXPECT_EQ(five.low, 1);
  EXPECT_EQ(five.median, 3);
  EXPECT_EQ(five.high, 5);
  EXPECT_EQ(median_interval_of({7}).low, 7);
  EXPECT_EQ(median_interval_of({}).count, 0U);
}

}  // namespace
}  // namespace reprise::bench
