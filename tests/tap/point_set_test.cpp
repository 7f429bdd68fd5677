// The grammar of sets of points, and what it says about what it does not take.
#include <gtest/gtest.h>

#include "reprise/base/error.hpp"
#include "reprise/tap/point_set.hpp"
#include "tests/support/observe.hpp"

namespace reprise {
namespace {

TEST(point_set, none_has_no_point_and_star_has_all) {
  EXPECT_FALSE(point_set{"none"}.contains({"resid_pre", 0}));
  EXPECT_TRUE(point_set{"none"}.empty());
  EXPECT_TRUE(point_set{"*"}.contains({"anything", 77}));
  EXPECT_FALSE(point_set{"*"}.empty());
}

TEST(point_set, layers_are_ranges_joined_by_plus) {
  const point_set set{"resid_pre:0-2+7,logits,mlp_out:*"};
  for (const int layer : {0, 1, 2, 7}) EXPECT_TRUE(set.contains({"resid_pre", layer})) << layer;
  for (const int layer : {3, 6, 8}) EXPECT_FALSE(set.contains({"resid_pre", layer})) << layer;
  EXPECT_TRUE(set.contains({"logits", 0}));
  EXPECT_TRUE(set.contains({"mlp_out", 12}));
  EXPECT_FALSE(set.contains({"resid", 0}));
}

TEST(point_set, what_is_no_set_gets_one_line_that_names_the_part) {
  for (const char* wrong :
       {"", "resid_pre:", "resid_pre:3-", "resid_pre:-3", "resid_pre:x", ",", "resid_pre:5-3",
        "a:1,none", "*,a", ":3", "a:1++2", "a:70000", "a:1-2-3", "a/b:1"}) {
    const std::string line = test::message_of<usage_error>([&] { point_set{wrong}; });
    EXPECT_TRUE(line.starts_with("points '" + std::string{wrong} + "': ")) << line;
    EXPECT_FALSE(test::has(line, "\n")) << line;
  }
}

TEST(point_set, a_part_that_fits_no_known_point_is_named) {
  const point_set set{"resid_pre:0-1,resid_pst:3"};
  EXPECT_EQ(set.unmatched({{"resid_pre", 1}}), "resid_pst:3");
  EXPECT_EQ(set.unmatched({{"resid_pre", 1}, {"resid_pst", 3}}), "");
}

}  // namespace
}  // namespace reprise
