// Arrays as npy files: the header to the byte, and what is refused.
#include "reprise/formats/npy.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tests/formats/support.hpp"

namespace reprise::test {
namespace {

std::string header_text(dtype type, std::vector<std::int64_t> shape) {
  const std::vector<std::byte> bytes = formats::npy_header(type, shape);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(npy_test, has_the_header_that_numpy_wants) {
  const std::string header = header_text(dtype::f32, {3, 4});
  EXPECT_EQ(header.size(), 128U);
  EXPECT_EQ(header.substr(0, 10), (std::string{"\x93NUMPY\x01\x00\x76\x00", 10}));
  EXPECT_EQ(header.substr(10, 61), "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4, ), }");
  EXPECT_EQ(header.back(), '\n');
  EXPECT_NE(header_text(dtype::u8, {}).find("'|u1', 'fortran_order': False, 'shape': ()"),
            std::string::npos);
}

TEST(npy_test, begins_its_elements_at_a_multiple_of_64_whatever_the_shape) {
  for (std::int64_t rank = 0; rank < 12; ++rank) {
    const std::vector<std::int64_t> shape(static_cast<std::size_t>(rank), 1'234'567);
    const std::string header = header_text(dtype::i64, shape);
    EXPECT_EQ(header.size() % 64, 0U);
    const auto low = static_cast<unsigned char>(header[8]);
    const auto high = static_cast<unsigned char>(header[9]);
    EXPECT_EQ(low + 256U * high + 10, header.size());
  }
}

TEST(npy_test, refuses_what_the_format_has_no_name_for_and_shapes_that_lie) {
  EXPECT_NE(refusal([] { formats::npy_header(dtype::bf16, {}); }).find("bf16"), std::string::npos);
  const scratch_folder folder;
  const std::vector<std::byte> bytes(12);
  const std::vector<std::int64_t> shape{2};
  const auto write = [&](const char* name) {
    formats::write_npy(folder.path() / name, dtype::f32, shape, bytes);
  };
  EXPECT_NE(refusal([&] { write("a"); }).find("takes 8 bytes and that is given 12"),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "a"));
}

TEST(npy_test, is_written_whole_or_not_at_all) {
  const scratch_folder folder;
  const std::vector<std::int64_t> shape{3};
  const std::vector<std::byte> bytes(12, std::byte{1});
  formats::write_npy(folder.path() / "a.npy", dtype::f32, shape, bytes);
  EXPECT_EQ(std::filesystem::file_size(folder.path() / "a.npy"), 64U + 64U + 12U);
  EXPECT_NE(failure([&] {
              formats::write_npy(folder.path() / "none" / "a.npy", dtype::f32, shape, bytes);
            }).find("cannot be written"),
            std::string::npos);
}

}  // namespace
}  // namespace reprise::test
