// Views, tensors and what an argument declares.
#include "reprise/device/view.hpp"

#include <gtest/gtest.h>

#include <array>
#include <concepts>

namespace reprise {
namespace {

TEST(dims, count_their_elements_and_know_their_extents) {
  const dims shape{2, 3, 4};
  EXPECT_EQ(shape.rank, 3);
  EXPECT_EQ(shape.count(), 24U);
  EXPECT_EQ(shape[1], 3);
  EXPECT_EQ(dims{}.count(), 1U) << "a scalar";
  EXPECT_EQ((dims{5, 0}).count(), 0U);
}

TEST(dims, are_the_same_with_the_same_extents_and_rank) {
  EXPECT_EQ((dims{2, 3}), (dims{2, 3}));
  EXPECT_NE((dims{2, 3}), (dims{3, 2}));
  EXPECT_NE((dims{2}), (dims{2, 0})) << "unused extents are zero";
}

TEST(dims, have_row_major_strides) {
  EXPECT_EQ(contiguous_strides({2, 3, 4}), (dims{12, 4, 1}));
  EXPECT_EQ(contiguous_strides({7}), (dims{1}));
  EXPECT_EQ(contiguous_strides({}), dims{});
}

TEST(dims, are_written_for_people) {
  EXPECT_EQ(to_string(dims{4, 256}), "[4, 256]");
  EXPECT_EQ(to_string(dims{any, 1}), "[any, 1]");
  EXPECT_EQ(to_string(dims{}), "[]");
}

TEST(view, names_elements_and_parts_of_them) {
  std::array<std::int32_t, 5> data{1, 2, 3, 4, 5};
  const view<std::int32_t> whole{data.data(), data.size()};
  EXPECT_EQ(whole.bytes(), 20U);
  const view<std::int32_t> part = whole.subview(2, 2);
  EXPECT_EQ(part.size(), 2U);
  EXPECT_EQ(part[0], 3);
  part[1] = 40;
  EXPECT_EQ(data[3], 40);
}

TEST(view, of_elements_is_one_of_constants_and_never_back) {
  EXPECT_TRUE((std::convertible_to<view<float>, view<const float>>));
  EXPECT_FALSE((std::convertible_to<view<const float>, view<float>>));
  EXPECT_FALSE((std::constructible_from<write<float>, view<const float>>));
  EXPECT_FALSE((std::constructible_from<inout<float>, view<const float>>));
  EXPECT_TRUE((std::constructible_from<read<float>, view<float>>));
  EXPECT_FALSE((std::convertible_to<view<float>, write<float>>)) << "a launch says the word";
}

TEST(as_tensor, gives_type_shape_and_strides) {
  std::array<float, 6> data{};
  const tensor_ref tensor = as_tensor(view<float>{data.data(), data.size()}, {2, 3});
  EXPECT_EQ(tensor.data, reinterpret_cast<std::byte*>(data.data()));
  EXPECT_EQ(tensor.type, dtype::f32);
  EXPECT_EQ(tensor.strides, (dims{3, 1}));
  EXPECT_EQ(tensor.bytes(), 24U);
  EXPECT_EQ(elements_of<float>(tensor).size(), 6U);
  EXPECT_EQ(as_tensor(view<float>{data.data(), 4}).shape, (dims{4}));
}

TEST(access_of, says_what_is_touched_and_whether_it_is_written) {
  std::array<double, 3> data{};
  const view<double> all{data.data(), data.size()};
  const access reads = access_of(read<double>{all});
  EXPECT_EQ(reads.begin, data.data());
  EXPECT_EQ(reads.bytes, 24U);
  EXPECT_FALSE(reads.writes);
  EXPECT_TRUE(access_of(write<double>{all}).writes);
  EXPECT_TRUE(access_of(inout<double>{all}).writes);
  EXPECT_TRUE(is_access<read<double>> && is_access<write<double>> && is_access<inout<double>>);
  EXPECT_FALSE(is_access<view<double>> || is_access<int>);
}

}  // namespace
}  // namespace reprise
