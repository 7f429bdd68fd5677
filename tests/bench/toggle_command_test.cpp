// `reprise bench toggle` as a person types it. Never a time.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/command.hpp"

namespace reprise {
namespace {

using test::run_result;

class toggle_command_test : public test::command_fixture {};

TEST_F(toggle_command_test, writes_each_figure_beside_its_floor_and_leaves_limits_to_a_gpu) {
  const std::string command =
      "bench toggle --device cpu --points 4,8 --repeats 2 --pairs 6 --schedules 5";
  const run_result result = run(command + " --json -");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json value = nlohmann::json::parse(result.out);
  EXPECT_EQ(value.at("bench"), "toggle");
  EXPECT_EQ(value.at("command"), "reprise " + command);
  ASSERT_EQ(value.at("figures").size(), 8U);
  for (const nlohmann::json& figure : value.at("figures")) {
    EXPECT_TRUE(figure.at("limit_us").is_number());
    EXPECT_TRUE(figure.at("within").is_null()) << "nobody judges a CPU";
    EXPECT_TRUE(figure.at("adds_us").is_number());
  }
  EXPECT_EQ(value.at("figures").at(0).at("points"), 4);
  EXPECT_EQ(value.at("figures").at(0).at("adds_interval_us").at("count"), 6);
  EXPECT_TRUE(value.at("in_flight").at(0).at("within").is_null());
  ASSERT_EQ(value.at("calls").size(), 8U);
  for (const nlohmann::json& calls : value.at("calls")) {
    EXPECT_EQ(calls.at("eager"), 0);
    EXPECT_EQ(calls.at("bitwise_equal"), true);
    EXPECT_EQ(calls.at("records").at("seen"), calls.at("records").at("expected"));
    EXPECT_EQ(calls.at("driver_calls").at("timed"), calls.at("driver_calls").at("planned"));
  }
}

TEST_F(toggle_command_test, wrong_words_are_one_line_and_exit_2) {
  for (const char* option : {"--points", "--repeats", "--pairs", "--schedules"}) {
    expect_refused(std::string{"bench toggle --device cpu "} + option + " 0", option);
  }
  expect_refused("bench toggle --points 8,x", "x");
  expect_refused("bench toggle --device cuda:9", "cuda:9");
}

}  // namespace
}  // namespace reprise
