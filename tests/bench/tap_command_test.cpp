// `reprise bench tap` as a person types it. Never a time.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/command.hpp"

namespace reprise {
namespace {

using test::run_result;

class tap_command_test : public test::command_fixture {};

TEST_F(tap_command_test, writes_each_figure_beside_its_floor_and_leaves_limits_to_a_gpu) {
  const std::string command =
      "bench tap --device cpu --layers 3 --layer-mib 1 --kib 8 --buffers 3,2 --repeats 2 --pairs 6 "
      "--drain-mib 2 --drains 2 --producer-mib 1 --plans 5";
  const run_result result = run(command + " --json -");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json value = nlohmann::json::parse(result.out);
  EXPECT_EQ(value.at("bench"), "tap");
  EXPECT_EQ(value.at("command"), "reprise " + command);
  EXPECT_TRUE(value.at("device_time").is_string());
  ASSERT_EQ(value.at("placement").size(), 2U);
  const nlohmann::json& rows = value.at("placement").at(0).at("rows");
  ASSERT_EQ(rows.size(), 6U);
  EXPECT_EQ(rows.at(0).at("what"), "all on");
  EXPECT_EQ(rows.at(0).at("device").at("floor"), "bare");
  EXPECT_EQ(rows.at(0).at("device").at("us").at("count"), 2);
  EXPECT_TRUE(rows.at(0).at("device").at("adds_us").is_number());
  EXPECT_TRUE(rows.at(1).at("host").is_null());
  EXPECT_EQ(rows.at(5).at("what"), "none on");
  EXPECT_EQ(rows.at(5).at("device").at("limit_us"), 0.5);
  EXPECT_TRUE(rows.at(5).at("device").at("within").is_null()) << "nobody judges a CPU";
  EXPECT_EQ(rows.at(5).at("device_adds_us").at("count"), 6);
  ASSERT_EQ(value.at("drain").size(), 2U);
  EXPECT_EQ(value.at("drain").at(0).at("records"), 128);
  for (const nlohmann::json& drain : value.at("drain")) {
    ASSERT_EQ(drain.at("figures").size(), 5U);
    EXPECT_GT(drain.at("figures").at(0).at("gb_s"), 0);
    EXPECT_GT(drain.at("figures").at(0).at("share"), 0);
    EXPECT_TRUE(drain.at("figures").at(0).at("within").is_null());
  }
  ASSERT_EQ(value.at("producers").size(), 2U);
  EXPECT_EQ(value.at("producers").at(1).at("bytes"), 64 << 10);
  EXPECT_EQ(value.at("producers").at(1).at("node").at("most_us"), 3.0);
  ASSERT_EQ(value.at("planning").size(), 3U);
  EXPECT_EQ(value.at("planning").at(0).at("points"), 438);
  EXPECT_TRUE(value.at("planning").at(0).at("within").is_boolean());
  for (const nlohmann::json& calls : value.at("calls")) {
    EXPECT_EQ(calls.at("eager"), 0);
    EXPECT_EQ(calls.at("replayed"), calls.at("measured"));
    EXPECT_EQ(calls.at("publications").at("published"), calls.at("publications").at("planned"));
    EXPECT_EQ(calls.at("bitwise_equal"), true);
  }
}

TEST_F(tap_command_test, wrong_words_are_one_line_and_exit_2) {
  for (const char* option : {"--layers", "--layer-mib", "--kib", "--buffers", "--repeats",
                             "--pairs", "--drain-mib", "--drains", "--producer-mib", "--plans"}) {
    expect_refused(std::string{"bench tap --device cpu "} + option + " 0", option);
  }
  expect_refused("bench tap --kib 8,x", "x");
  expect_refused("bench tap --device cuda:9", "cuda:9");
  expect_refused("bench tap --json /nowhere/x.json", "/nowhere/x.json");
}

}  // namespace
}  // namespace reprise
