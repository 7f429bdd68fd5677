// The picture of norms: where it is bright, and what has no place in it.
#include <gtest/gtest.h>

#include <cmath>

#include "reprise/records/record_heat_map.hpp"
#include "tests/records/support.hpp"

namespace reprise::test {
namespace {

owned_record one_float(int layer, std::int64_t token, float value) {
  owned_record made;
  made.kind = "resid_pre";
  made.layer = layer;
  made.first_row = token;
  made.rows = 1;
  made.shape = {1, 1};
  made.bytes.resize(sizeof value);
  std::memcpy(made.bytes.data(), &value, sizeof value);
  return made;
}

// The grey of a place; a picture of these tests has squares of 12 pixels.
int grey_of(const grey_picture& picture, std::int64_t layer, std::int64_t token) {
  return picture
      .pixels[static_cast<std::size_t>((layer * 12 + 5) * picture.width + token * 12 + 5)];
}

TEST(heat_map_test, has_a_place_for_each_layer_and_token_and_the_logarithm_of_its_norm) {
  record_heat_map map;
  map.add(one_float(2, 10, 1).view());
  map.add(one_float(2, 11, -10).view());
  map.add(one_float(4, 12, 100).view());
  const grey_picture picture = map.picture();
  EXPECT_EQ(picture.width, 3 * 12);
  EXPECT_EQ(picture.height, 3 * 12);
  EXPECT_EQ(grey_of(picture, 0, 0), 24);
  EXPECT_EQ(grey_of(picture, 0, 1), 140) << "half way between 24 and 255";
  EXPECT_EQ(grey_of(picture, 2, 2), 255);
  EXPECT_EQ(grey_of(picture, 1, 1), 0) << "no record is of that place";
}

TEST(heat_map_test, shows_the_mean_where_several_rows_are_of_one_place) {
  record_heat_map map;
  map.add(one_float(0, 0, 3).view());
  map.add(one_float(0, 0, -5).view());
  EXPECT_EQ(map.norm_at(0, 0), 4.0);
  EXPECT_EQ(map.norm_at(0, 1), std::nullopt);
  EXPECT_EQ(grey_of(map.picture(), 0, 0), 255);
}

TEST(heat_map_test, leaves_out_scores_points_without_layers_and_rows_that_are_not_finite) {
  record_heat_map map;
  owned_record scores = one_float(0, 0, 1);
  scores.content = record_content::scores;
  map.add(scores.view());
  map.add(one_float(-1, 0, 1).view());
  map.add(one_float(0, 0, NAN).view());
  EXPECT_TRUE(map.empty());
  EXPECT_TRUE(has(line_of<usage_error>([&] { map.picture(); }), "no rows"));
}

TEST(heat_map_test, shows_one_kind_and_no_more_than_a_picture_holds) {
  record_heat_map map;
  map.add(one_float(0, 0, 1).view());
  owned_record other = one_float(0, 0, 1);
  other.kind = "mlp_out";
  EXPECT_TRUE(has(line_of<usage_error>([&] { map.add(other.view()); }), "point=KIND"));
  other = one_float(0, 0, 1);
  other.shard = 1;
  other.shards = 2;
  EXPECT_TRUE(has(line_of<usage_error>([&] { map.add(other.view()); }), "shard=N"));
  map.add(one_float(0, 70'000, 1).view());
  EXPECT_TRUE(has(line_of<usage_error>([&] { map.picture(); }), "70001 tokens"));
}

}  // namespace
}  // namespace reprise::test
