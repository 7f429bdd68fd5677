// What a summary says of records, point by point.
#include "reprise/records/record_summary.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reprise/records/record_elements.hpp"
#include "tests/records/support.hpp"

namespace reprise::test {
namespace {

template <class Element>
owned_record record_of(int layer, std::int64_t first_row, const std::vector<Element>& elements,
                       std::int64_t rows) {
  owned_record made;
  made.kind = "resid_pre";
  made.layer = layer;
  made.first_row = first_row;
  made.rows = rows;
  made.type = dtype_of<Element>;
  made.shape = {rows, static_cast<std::int64_t>(elements.size()) / rows};
  const auto bytes = std::as_bytes(std::span{elements});
  made.bytes.assign(bytes.begin(), bytes.end());
  return made;
}

TEST(record_elements_test, are_widened_from_every_type) {
  EXPECT_EQ(element_at(record_of<float>(0, 0, {1.5F, -2.0F}, 1).view(), 1), -2.0);
  EXPECT_EQ(element_at(record_of<double>(0, 0, {0.1}, 1).view(), 0), 0.1);
  EXPECT_EQ(element_at(record_of<bf16>(0, 0, {bf16{0xc040}}, 1).view(), 0), -3.0);
  EXPECT_EQ(element_at(record_of<std::int32_t>(0, 0, {-7}, 1).view(), 0), -7.0);
  EXPECT_EQ(element_at(record_of<std::int64_t>(0, 0, {-8}, 1).view(), 0), -8.0);
  EXPECT_EQ(element_at(record_of<std::uint64_t>(0, 0, {9}, 1).view(), 0), 9.0);
  EXPECT_EQ(element_at(record_of<std::uint8_t>(0, 0, {200}, 1).view(), 0), 200.0);
  owned_record half = record_of<bf16>(0, 0, {bf16{0x3c00}}, 1);
  half.type = dtype::f16;
  EXPECT_EQ(element_at(half.view(), 0), 1.0);
}

TEST(record_elements_test, make_the_norm_of_each_row) {
  const owned_record record = record_of<float>(0, 0, {3, 4, 6, 8}, 2);
  EXPECT_EQ(row_elements(record.view()), 2);
  EXPECT_EQ(row_norm(record.view(), 0), 5.0);
  EXPECT_EQ(row_norm(record.view(), 1), 10.0);
}

TEST(record_summary_test, counts_by_point_and_knows_the_ranges) {
  record_summary summary;
  for (const owned_record& record : records_numbered(0, 40)) summary.add(record.view());
  ASSERT_EQ(summary.points().size(), 5U) << "one of four points is in two shards";
  const point_summary& point = summary.points().at({"resid_pre", 1});  // 1, 5, ..., 37
  EXPECT_EQ(point.records, 10U);
  EXPECT_EQ(point.requests, (std::set<std::uint64_t>{1, 3, 5, 7, 9}));
  EXPECT_EQ(point.first_step, 0U);
  EXPECT_EQ(point.last_step, 4U);
  EXPECT_EQ(point.first_token, 0);
  EXPECT_EQ(point.last_token, 4);  // record 29 has rows 2 to 4
  EXPECT_EQ(point.types, (std::set<dtype>{dtype::f32, dtype::bf16, dtype::i64}));
  EXPECT_TRUE(point.shard_axes.empty());
  const point_summary& shard = summary.points().at({"final_norm", -1, 1, 2});  // 7, 15, ..., 39
  EXPECT_EQ(shard.records, 5U);
  EXPECT_EQ(shard.shard_axes, std::set<int>{1});
}

TEST(record_summary_test, knows_the_requests_of_all_points_together) {
  record_summary summary;
  EXPECT_TRUE(summary.requests().empty());
  for (const std::uint64_t n : {0U, 1U, 11U, 20U}) summary.add(record_number(n).view());
  EXPECT_EQ(summary.requests(), (std::set<std::uint64_t>{0, 1}));
}

TEST(record_summary_test, takes_norms_of_finite_rows_and_counts_the_other_elements) {
  constexpr float infinite = std::numeric_limits<float>::infinity();
  record_summary summary;
  summary.add(record_of<float>(0, 5, {3, 4, NAN, 1, infinite, NAN, 0, 5}, 4).view());
  const point_summary& point = summary.points().at({"resid_pre", 0});
  EXPECT_EQ(point.bad_elements, 3U);
  EXPECT_EQ(point.norms, 2U);
  EXPECT_EQ(point.mean_norm(), 5.0);
  EXPECT_EQ(point.last_token, 8);
}

}  // namespace
}  // namespace reprise::test
