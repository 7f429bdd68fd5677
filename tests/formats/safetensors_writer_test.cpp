// Tensors written and read back by the strict reader.
#include "reprise/formats/safetensors_writer.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "reprise/formats/safetensors.hpp"
#include "tests/formats/support.hpp"

namespace reprise::test {
namespace {

using formats::tensor_to_write;

TEST(safetensors_writer_test, writes_what_the_reader_reads) {
  const scratch_folder folder;
  std::vector<tensor_to_write> tensors;
  for (const dtype type : {dtype::u8, dtype::f32, dtype::f16, dtype::bf16, dtype::f64, dtype::i32,
                           dtype::i64, dtype::u64}) {
    tensors.push_back({"a \"tensor\" of " + std::string{name_of(type)},
                       type,
                       {3, 1},
                       std::vector<std::byte>(3 * size_of(type), std::byte{9})});
  }
  tensors.push_back({"empty", dtype::f32, {0, 5}, {}});
  tensors.push_back({"scalar", dtype::f64, {}, std::vector<std::byte>(8, std::byte{7})});
  const std::filesystem::path file = folder.path() / "a.safetensors";
  formats::write_safetensors(file, tensors);
  const safetensors_file read{file};
  ASSERT_EQ(read.tensors().size(), tensors.size());
  for (const tensor_to_write& wrote : tensors) {
    const stored_tensor& found = read.at(wrote.name);
    EXPECT_EQ(found.type, wrote.type) << wrote.name;
    EXPECT_EQ(found.shape, wrote.shape) << wrote.name;
    EXPECT_TRUE(std::ranges::equal(found.bytes, wrote.bytes)) << wrote.name;
  }
}

TEST(safetensors_writer_test, refuses_tensors_that_would_make_no_file) {
  const scratch_folder folder;
  const std::filesystem::path file = folder.path() / "a.safetensors";
  const auto refused = [&](std::vector<tensor_to_write> tensors) {
    return refusal([&] { formats::write_safetensors(file, tensors); });
  };
  EXPECT_NE(refused({{"x", dtype::f32, {2}, std::vector<std::byte>(4)}}).find("takes 8 bytes"),
            std::string::npos);
  EXPECT_NE(refused({{"x", dtype::u8, {0}, {}}, {"x", dtype::u8, {0}, {}}}).find("there twice"),
            std::string::npos);
  EXPECT_NE(refused({{"\xff", dtype::u8, {0}, {}}}).find("UTF-8"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(file));
}

}  // namespace
}  // namespace reprise::test
