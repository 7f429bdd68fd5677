// Records as arrays: which rows, in which order, of which type.
#include "reprise/records/record_export.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "reprise/formats/safetensors.hpp"
#include "tests/records/support.hpp"

namespace reprise::test {
namespace {

std::string bytes_in(const std::filesystem::path& file) {
  std::ifstream in{file, std::ios::binary};
  return {std::istreambuf_iterator<char>{in}, {}};
}

template <class Element>
std::vector<Element> elements_of(const stored_tensor& tensor) {
  std::vector<Element> all(tensor.bytes.size() / sizeof(Element));
  std::memcpy(all.data(), tensor.bytes.data(), tensor.bytes.size());
  return all;
}

// Rows of two f32: 100 * request + token, and the step.
owned_record two_floats(std::uint64_t request, std::int64_t token, std::int64_t rows,
                        std::uint64_t step, int layer = 3) {
  owned_record made;
  made.kind = "resid_pre";
  made.layer = layer;
  made.request = request;
  made.first_row = token;
  made.rows = rows;
  made.step = step;
  made.shape = {rows, 2};
  std::vector<float> values;
  for (std::int64_t row = 0; row < rows; ++row) {
    values.push_back(static_cast<float>(100 * static_cast<std::int64_t>(request) + token + row));
    values.push_back(static_cast<float>(step));
  }
  const auto bytes = std::as_bytes(std::span{values});
  made.bytes.assign(bytes.begin(), bytes.end());
  return made;
}

class record_export_test : public testing::Test {
 protected:
  scratch_folder scratch;
  std::filesystem::path file = scratch.path() / "out";
};

TEST_F(record_export_test, orders_rows_by_request_token_and_step) {
  record_export made;
  made.add(two_floats(2, 0, 2, 5).view());
  made.add(two_floats(1, 4, 1, 9).view());
  made.add(two_floats(1, 3, 1, 7).view());
  made.add(two_floats(1, 3, 1, 6).view());
  made.add(two_floats(0, 1, 1, 1, 4).view());
  EXPECT_EQ(made.points(), 2U);
  EXPECT_EQ(made.rows(), 6U);
  made.write_safetensors(file);
  const safetensors_file read{file};
  ASSERT_EQ(read.tensors().size(), 8U);
  EXPECT_EQ(read.at("resid_pre:3").shape, (std::vector<std::int64_t>{5, 2}));
  EXPECT_EQ(elements_of<float>(read.at("resid_pre:3")),
            (std::vector<float>{103, 6, 103, 7, 104, 9, 200, 5, 201, 5}));
  EXPECT_EQ(elements_of<std::uint64_t>(read.at("resid_pre:3.request")),
            (std::vector<std::uint64_t>{1, 1, 1, 2, 2}));
  EXPECT_EQ(elements_of<std::int64_t>(read.at("resid_pre:3.token")),
            (std::vector<std::int64_t>{3, 3, 4, 0, 1}));
  EXPECT_EQ(elements_of<std::uint64_t>(read.at("resid_pre:3.step")),
            (std::vector<std::uint64_t>{6, 7, 9, 5, 5}));
  EXPECT_EQ(elements_of<float>(read.at("resid_pre:4")), (std::vector<float>{1, 1}));
}

TEST_F(record_export_test, writes_each_shard_of_a_point_for_itself) {
  record_export made;
  for (const int shard : {1, 0}) {
    owned_record part = two_floats(0, shard, 1, 0);
    part.kind = "q";
    part.shard = shard;
    part.shards = 2;
    part.shard_axis = 1;
    made.add(part.view());
  }
  owned_record whole = two_floats(0, 7, 1, 0);
  whole.kind = "q";
  made.add(whole.view());
  EXPECT_TRUE(has(line_of<usage_error>([&] { made.write_npy(file); }), "3 points"));
  made.write_safetensors(file);
  const safetensors_file read{file};
  EXPECT_EQ(read.tensors().size(), 4U + 2 * 5);
  EXPECT_EQ(elements_of<float>(read.at("q:3@0of2")), (std::vector<float>{0, 0}));
  EXPECT_EQ(elements_of<float>(read.at("q:3@1of2")), (std::vector<float>{1, 0}));
  EXPECT_EQ(elements_of<float>(read.at("q:3")), (std::vector<float>{7, 0}));
  EXPECT_EQ(elements_of<std::int64_t>(read.at("q:3@1of2.token")), std::vector<std::int64_t>{1});
  EXPECT_EQ(elements_of<std::int32_t>(read.at("q:3@1of2.shard_axis")),
            std::vector<std::int32_t>{1});
}

TEST_F(record_export_test, writes_one_point_as_npy) {
  record_export made;
  made.add(two_floats(2, 0, 2, 5).view());
  made.add(two_floats(1, 4, 1, 9).view());
  made.write_npy(file);
  const std::string bytes = bytes_in(file);
  EXPECT_TRUE(has(bytes, "'descr': '<f4', 'fortran_order': False, 'shape': (3, 2, ), }"));
  const float expected[] = {104, 9, 200, 5, 201, 5};
  ASSERT_GT(bytes.size(), sizeof expected);
  EXPECT_EQ((bytes.size() - sizeof expected) % 64, 0U);
  EXPECT_EQ(std::memcmp(bytes.data() + bytes.size() - sizeof expected, expected, sizeof expected),
            0);
}

TEST_F(record_export_test, widens_bf16_for_npy_exactly) {
  owned_record record = two_floats(0, 0, 1, 0);
  record.type = dtype::bf16;
  record.bytes.resize(4);
  const std::uint16_t stored[] = {0x3f80, 0xc040};  // 1, -3
  std::memcpy(record.bytes.data(), stored, sizeof stored);
  record_export made;
  made.add(record.view());
  made.write_npy(file);
  const std::string bytes = bytes_in(file);
  EXPECT_TRUE(has(bytes, "'<f4'"));
  const float expected[] = {1, -3};
  EXPECT_EQ(std::memcmp(bytes.data() + bytes.size() - sizeof expected, expected, sizeof expected),
            0);
}

TEST_F(record_export_test, refuses_what_makes_no_array) {
  record_export made;
  EXPECT_TRUE(has(line_of<usage_error>([&] { made.write_npy(file); }), "none to write"));
  EXPECT_TRUE(has(line_of<usage_error>([&] { made.write_safetensors(file); }), "none to write"));
  made.add(two_floats(0, 0, 1, 0).view());
  owned_record wider = two_floats(0, 0, 1, 0);
  wider.shape = {1, 1, 2};
  EXPECT_TRUE(has(line_of<usage_error>([&] { made.add(wider.view()); }), "\"resid_pre:3\""));
  owned_record other_axis = two_floats(0, 0, 1, 0);
  other_axis.shard_axis = 0;
  EXPECT_TRUE(has(line_of<usage_error>([&] { made.add(other_axis.view()); }), "shard axes"));
  made.add(two_floats(0, 0, 1, 0, 4).view());
  EXPECT_TRUE(has(line_of<usage_error>([&] { made.write_npy(file); }), "2 points"));
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_TRUE(
      has(line_of<error>([&] { made.write_safetensors(file / "below"); }), "cannot be written"));
}

}  // namespace
}  // namespace reprise::test
