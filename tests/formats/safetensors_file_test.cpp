// Files on disk: found, mapped, moved, larger than memory; and the paths that lead to none.
#include "reprise/formats/safetensors.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

#include "tests/formats/support.hpp"

namespace reprise {
namespace {

using test::entry;
using test::file_of;
using test::scratch_folder;

static_assert(!std::is_copy_constructible_v<safetensors_file>);
static_assert(std::is_nothrow_move_constructible_v<formats::mapped_file>);

std::string refusal(const std::filesystem::path& path) {
  return test::refusal([&] { safetensors_file{path}; });
}

std::string text_of(const stored_tensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size()};
}

std::string two_tensors() {
  return file_of(R"({"__metadata__":{"format":"pt"},)" + entry("b", "U8", "[2,2]", "[3,7]") + "," +
                     entry("a", "U8", "[3]", "[0,3]") + "}",
                 "abcdefg");
}

TEST(safetensors_file, tensors_are_found_by_name_with_their_bytes) {
  const scratch_folder folder;
  const safetensors_file file{folder.write("w.safetensors", two_tensors())};
  ASSERT_NE(file.find("b"), nullptr);
  EXPECT_EQ(file.find("b"), &file.at("b"));
  EXPECT_EQ(file.at("b").name, "b");
  EXPECT_EQ(file.at("b").type, dtype::u8);
  EXPECT_EQ(file.at("b").shape, (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(text_of(file.at("b")), "defg");
  EXPECT_EQ(text_of(file.at("a")), "abc");
  EXPECT_EQ(file.metadata().at("format"), "pt");
}

TEST(safetensors_file, tensors_come_in_the_order_of_their_bytes) {
  const scratch_folder folder;
  const safetensors_file file{folder.write("w.safetensors", two_tensors())};
  ASSERT_EQ(file.tensors().size(), 2u);
  EXPECT_EQ(file.tensors()[0].name, "a");
  EXPECT_EQ(file.tensors()[1].name, "b");
}

TEST(safetensors_file, a_name_it_does_not_have_is_null_or_refused) {
  const scratch_folder folder;
  const safetensors_file file{folder.write("w.safetensors", two_tensors())};
  EXPECT_EQ(file.find("c"), nullptr);
  EXPECT_EQ(
      test::refusal([&] { file.at("c"); }),
      file.path().native() +
          R"(: the file has no such tensor [tensor "c"], check the name, or that this is the )"
          "right file");
}

TEST(safetensors_file, a_moved_file_keeps_its_tensors_and_their_addresses) {
  const scratch_folder folder;
  safetensors_file first{folder.write("w.safetensors", two_tensors())};
  const stored_tensor* const tensor = first.find("a");
  safetensors_file second{std::move(first)};
  EXPECT_EQ(second.find("a"), tensor);
  EXPECT_EQ(text_of(*tensor), "abc");

  safetensors_file third{folder.write("other.safetensors", file_of("{}"))};
  third = std::move(second);
  EXPECT_EQ(third.find("a"), tensor);
  EXPECT_EQ(text_of(*tensor), "abc");
}

TEST(safetensors_file, a_file_larger_than_memory_opens_at_once) {
  const scratch_folder folder;
  constexpr std::uint64_t data_bytes = std::uint64_t{1} << 42;  // a sparse file of 4 TiB
  const std::filesystem::path path =
      folder.write("big.safetensors",
                   file_of("{" + entry("a", "U8", "[4398046511104]", "[0,4398046511104]") + "}"));
  std::error_code full;
  std::filesystem::resize_file(path, std::filesystem::file_size(path) + data_bytes, full);
  if (full) GTEST_SKIP() << "no sparse file of 4 TiB here: " << full.message();
  const safetensors_file file{path};
  EXPECT_EQ(file.at("a").bytes.size(), data_bytes);
  EXPECT_EQ(file.at("a").bytes.back(), std::byte{0});
}

TEST(safetensors_file, a_missing_file_is_refused) {
  const scratch_folder folder;
  const std::filesystem::path path = folder.path() / "absent.safetensors";
  EXPECT_EQ(refusal(path), path.native() + ": there is no such file, check the path");
}

TEST(safetensors_file, a_folder_is_refused) {
  const scratch_folder folder;
  EXPECT_EQ(refusal(folder.path()),
            folder.path().native() + ": this is a folder, not a file, give a file inside it");
}

TEST(safetensors_file, a_named_pipe_is_refused_and_not_waited_for) {
  const scratch_folder folder;
  const std::filesystem::path path = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(refusal(path), path.native() + ": this is not a regular file, copy its bytes into one");
}

TEST(safetensors_file, a_path_through_a_file_is_refused) {
  const scratch_folder folder;
  const std::filesystem::path path = folder.write("w.safetensors", two_tensors()) / "more";
  EXPECT_EQ(refusal(path), path.native() +
                               ": the file cannot be opened (Not a directory), check the path and "
                               "its permissions");
}

TEST(safetensors_file, a_path_with_a_zero_byte_is_refused) {
  EXPECT_EQ(refusal(std::string{"w.safetensors\0.txt", 18}),
            R"(w.safetensors\x00.txt: the path holds a zero byte, check the path)");
}

TEST(safetensors_file, an_empty_file_is_refused) {
  const scratch_folder folder;
  const std::filesystem::path path = folder.write("w.safetensors", "");
  EXPECT_EQ(refusal(path), path.native() + ": the file is empty, download or copy the file again");
}

TEST(safetensors_file, a_file_cut_in_its_data_is_refused) {
  const scratch_folder folder;
  const std::string whole = two_tensors();
  const std::filesystem::path path =
      folder.write("w.safetensors", std::string_view{whole}.substr(0, whole.size() - 1));
  EXPECT_EQ(refusal(path), path.native() +
                               R"(: the data ends outside the file (at byte 7 of 6 data bytes) )"
                               R"([tensor "b"], download or copy the file again)");
}

}  // namespace
}  // namespace reprise
