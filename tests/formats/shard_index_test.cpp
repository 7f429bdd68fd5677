// The index of a sharded model, and the line that each broken one gets.
#include "reprise/formats/shard_index.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tests/formats/support.hpp"

namespace reprise {
namespace {

std::string refusal(std::string_view text) {
  return test::refusal([&] { parse_shard_index(text, "w.index.json"); });
}

constexpr std::string_view write_again =
    "write the file again with a writer that keeps to the format";

std::string line(std::string_view what, std::string_view remedy = write_again) {
  return std::string{"w.index.json: "}.append(what).append(", ").append(remedy);
}

TEST(shard_index, each_tensor_has_its_shard) {
  const auto shards = parse_shard_index(
      R"({"metadata":{"total_size":7,"deep":[{"weight_map":1.5}]},
          "weight_map":{"a":"one.safetensors","b":"two.safetensors"}})",
      "w.index.json");
  EXPECT_EQ(shards, (std::map<std::string, std::string>{{"a", "one.safetensors"},
                                                        {"b", "two.safetensors"}}));
}

TEST(shard_index, text_that_is_no_json_object_is_refused) {
  EXPECT_EQ(refusal("[]"), line("the index is not a JSON object"));
  EXPECT_EQ(refusal(""), line("the index is not JSON at byte 1"));
  EXPECT_EQ(refusal("{\"\xc3\":1}"), line("the index is not UTF-8 at byte 3"));
  EXPECT_EQ(refusal(R"({"x":)" + std::string(1'000'000, '[')),
            line("the index is nested deeper than 64"));
}

TEST(shard_index, an_index_that_maps_nothing_is_refused) {
  EXPECT_EQ(refusal("{}"), line("weight_map is missing or names no tensor"));
  EXPECT_EQ(refusal(R"({"weight_map":{}})"), line("weight_map is missing or names no tensor"));
}

TEST(shard_index, a_map_that_is_not_an_object_is_refused) {
  for (const std::string map : {"1", "[]", R"("x")", "null"}) {
    EXPECT_EQ(refusal(R"({"weight_map":)" + map + "}"), line("weight_map is not a JSON object"));
  }
}

TEST(shard_index, a_shard_that_is_not_a_string_is_refused) {
  for (const std::string shard : {"1", "[]", "{}", "null"}) {
    EXPECT_EQ(refusal(R"({"weight_map":{"a":)" + shard + "}}"),
              line(R"(the shard is not a string [tensor "a"])"));
  }
}

TEST(shard_index, a_shard_outside_the_folder_is_refused) {
  for (const std::string shard :
       {"", ".", "..", "/etc/passwd", "../w.safetensors", "sub/w", "a\\\\b", "a\\n", "a\\u0000b"}) {
    const std::string told = refusal(R"({"weight_map":{"a":")" + shard + "\"}}");
    EXPECT_TRUE(told.ends_with(
        R"( is not a plain file name [tensor "a"], keep shards beside the index and name them )"
        "without a folder"))
        << told;
  }
}

TEST(shard_index, a_tensor_that_is_mapped_twice_is_refused) {
  EXPECT_EQ(refusal(R"({"weight_map":{"a":"one","a":"two"}})"),
            line(R"(the index has the key "a" twice)"));
}

}  // namespace
}  // namespace reprise
