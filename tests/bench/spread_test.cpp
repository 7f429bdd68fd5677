#include "bench/measure/spread.hpp"

#include <gtest/gtest.h>

#include <vector>

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

}  // namespace
}  // namespace reprise::bench
