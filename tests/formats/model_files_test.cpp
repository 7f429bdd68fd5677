// Folders with a model in one file or in shards, and folders that hold no model or two.
#include "reprise/formats/model_files.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/formats/support.hpp"

namespace reprise {
namespace {

using test::entry;
using test::file_of;
using test::scratch_folder;

constexpr std::string_view single_name = "model.safetensors";
constexpr std::string_view index_name = "model.safetensors.index.json";

std::string refusal(const std::filesystem::path& folder) {
  return test::refusal([&] { model_files{folder}; });
}

// A file of one byte tensors, one of each name.
std::string tensors_named(std::string_view names) {
  std::string header;
  std::size_t offset = 0;
  for (const char name : names) {
    const std::string range = "[" + std::to_string(offset) + "," + std::to_string(offset + 1) + "]";
    header += (offset++ == 0 ? "{" : ",") + entry(std::string(1, name), "U8", "[1]", range);
  }
  return file_of(header + "}", names);
}

std::string names_of(const model_files& model) {
  std::string names;
  for (const stored_tensor& tensor : model.tensors()) names += tensor.name;
  return names;
}

char value_of(const model_files& model, std::string_view name) {
  return static_cast<char>(model.at(name).bytes.front());
}

// Two shards, "one" with b and d, "two" with a and c.
void write_shards(const scratch_folder& folder) {
  folder.write("one", tensors_named("db"));
  folder.write("two", tensors_named("ac"));
  folder.write(index_name, R"({"weight_map":{"a":"two","b":"one","c":"two","d":"one"}})");
}

TEST(model_files, a_single_file_is_a_model) {
  const scratch_folder folder;
  folder.write(single_name, tensors_named("ca"));
  const model_files model{folder.path()};
  EXPECT_EQ(names_of(model), "ac");
  EXPECT_EQ(value_of(model, "c"), 'c');
  EXPECT_EQ(model.files().size(), 1u);
  EXPECT_EQ(model.find("b"), nullptr);
}

TEST(model_files, shards_are_one_set_of_tensors) {
  const scratch_folder folder;
  write_shards(folder);
  const model_files model{folder.path()};
  EXPECT_EQ(names_of(model), "abcd");
  for (const char name : std::string_view{"abcd"}) {
    EXPECT_EQ(value_of(model, std::string(1, name)), name);
  }
  EXPECT_EQ(model.files().size(), 2u);
}

TEST(model_files, a_moved_model_keeps_its_tensors) {
  const scratch_folder folder;
  write_shards(folder);
  model_files first{folder.path()};
  const stored_tensor* const tensor = first.find("d");
  const model_files second{std::move(first)};
  EXPECT_EQ(second.find("d"), tensor);
  EXPECT_EQ(names_of(second), "abcd");
}

TEST(model_files, a_tensor_that_the_index_does_not_list_is_part_of_the_model) {
  const scratch_folder folder;
  folder.write("one", tensors_named("ab"));
  folder.write(index_name, R"({"weight_map":{"a":"one"}})");
  EXPECT_EQ(names_of(model_files{folder.path()}), "ab");
}

TEST(model_files, an_index_may_name_the_single_file) {
  const scratch_folder folder;
  folder.write(single_name, tensors_named("a"));
  folder.write(index_name, R"({"weight_map":{"a":"model.safetensors"}})");
  EXPECT_EQ(names_of(model_files{folder.path()}), "a");
}

TEST(model_files, a_name_it_does_not_have_is_refused) {
  const scratch_folder folder;
  folder.write(single_name, tensors_named("a"));
  const model_files model{folder.path()};
  EXPECT_EQ(
      test::refusal([&] { model.at("x"); }),
      folder.path().native() +
          R"(: the model has no such tensor [tensor "x"], check the name, or that this is the )"
          "right model");
}

TEST(model_files, a_missing_folder_is_refused) {
  const scratch_folder folder;
  EXPECT_EQ(refusal(folder.path() / "absent"),
            folder.path().native() +
                "/absent: there is no such folder, give the folder that holds the model");
}

TEST(model_files, a_file_in_place_of_the_folder_is_refused) {
  const scratch_folder folder;
  const std::filesystem::path file = folder.write(single_name, tensors_named("a"));
  EXPECT_EQ(refusal(file),
            file.native() + ": this is not a folder, give the folder that holds the model");
}

TEST(model_files, a_folder_without_a_model_is_refused) {
  const scratch_folder folder;
  EXPECT_EQ(refusal(folder.path()),
            folder.path().native() +
                ": the folder has neither model.safetensors nor model.safetensors.index.json, give "
                "the folder that holds the model");
}

TEST(model_files, a_link_that_leads_nowhere_is_told_as_the_missing_file) {
  const scratch_folder folder;
  std::filesystem::create_symlink(folder.path() / "absent", folder.path() / single_name);
  EXPECT_EQ(refusal(folder.path()),
            folder.path().native() + "/model.safetensors: there is no such file, check the path");
}

TEST(model_files, two_models_in_one_folder_are_refused) {
  const scratch_folder folder;
  write_shards(folder);
  folder.write(single_name, tensors_named("z"));
  EXPECT_EQ(refusal(folder.path()),
            folder.path().native() +
                ": the folder has model.safetensors and an index that does not name it, keep the "
                "one that is meant");
}

TEST(model_files, a_missing_shard_is_refused) {
  const scratch_folder folder;
  write_shards(folder);
  std::filesystem::remove(folder.path() / "two");
  EXPECT_EQ(refusal(folder.path()),
            folder.path().native() + "/two: there is no such file, check the path");
}

TEST(model_files, a_broken_shard_is_refused_by_its_own_name) {
  const scratch_folder folder;
  write_shards(folder);
  folder.write("two", "");
  EXPECT_EQ(refusal(folder.path()),
            folder.path().native() + "/two: the file is empty, download or copy the file again");
}

TEST(model_files, a_shard_that_lacks_a_mapped_tensor_is_refused) {
  const scratch_folder folder;
  write_shards(folder);
  folder.write("two", tensors_named("a"));
  EXPECT_EQ(refusal(folder.path()),
            (folder.path() / index_name).native() +
                R"(: the shard "two" lacks a tensor that the index says it has [tensor "c"], )"
                "fetch the index and the shards again, from one place");
}

TEST(model_files, a_tensor_in_two_shards_is_refused) {
  const scratch_folder folder;
  write_shards(folder);
  folder.write("two", tensors_named("acb"));
  EXPECT_EQ(
      refusal(folder.path()),
      folder.path().native() +
          R"(/two: the tensor is in the shard "one" too [tensor "b"], keep it in one of them)");
}

TEST(model_files, an_index_that_leads_out_of_the_folder_is_refused) {
  const scratch_folder folder;
  write_shards(folder);
  folder.write(index_name, R"({"weight_map":{"a":"../two"}})");
  EXPECT_EQ(refusal(folder.path()),
            (folder.path() / index_name).native() +
                R"(: the shard "../two" is not a plain file name [tensor "a"], keep shards beside )"
                "the index and name them without a folder");
}

}  // namespace
}  // namespace reprise
