// `reprise matrix` and `reprise check ops` as a person types them.
#include <nlohmann/json.hpp>

#include <set>

#include "tests/support/command.hpp"

namespace reprise {
namespace {

using test::run_result;

class platform_command_test : public test::command_fixture {
 protected:
  nlohmann::json json_of(const std::string& arguments) const {
    const run_result result = run(arguments + " --json -");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out);
  }
};

TEST_F(platform_command_test, matrix_writes_each_cell_and_each_device_of_the_machine) {
  const nlohmann::json value = json_of("matrix --quiet");
  EXPECT_TRUE(value.at("version").is_string());
  EXPECT_EQ(value.at("devices").back(), "cpu");
  ASSERT_EQ(value.at("components").size(), 2U);
  EXPECT_EQ(value.at("components")[0].at("name"), "denoiser");
  std::set<std::string> kernels;
  for (const nlohmann::json& row : value.at("kernels")) {
    kernels.insert(row.at("name"));
    EXPECT_EQ(row.at("on").size(), value.at("devices").size());
    EXPECT_EQ(row.at("on").at("cpu").at("available"), row.at("on").at("cpu").at("why_not") == "");
    EXPECT_TRUE(row.at("bound").at("relative").is_number());
    EXPECT_TRUE(row.at("workspace").is_boolean());
    EXPECT_FALSE(row.at("source").get<std::string>().empty());
    if (row.at("device") == "cpu" && row.at("arch") == "generic") {
      EXPECT_EQ(row.at("on").at("cpu").at("available"), true) << row.at("name");
    }
    if (row.at("arch") == "checked") {
      EXPECT_EQ(row.at("on").at("cpu").at("why_not"), "only simulated GPUs run checked bodies");
    }
  }
  EXPECT_GT(kernels.size(), 15U);
  EXPECT_TRUE(kernels.contains("matmul(r:f32 r:bf16 w:f32)"));
}

TEST_F(platform_command_test, matrix_prints_a_line_for_each_cell) {
  const run_result result = run("matrix");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_NE(result.out.find("\n  swiglu(r:f32 r:f32 w:f32)\n    cpu   generic"), std::string::npos)
      << result.out;
  EXPECT_NE(result.out.find("runs on cpu"), std::string::npos);
  EXPECT_EQ(result.err, "");
}

TEST_F(platform_command_test, check_ops_holds_every_rung_of_the_cpu_to_the_generic_bodies) {
  const nlohmann::json value = json_of("check ops --device cpu --quiet");
  EXPECT_EQ(value.at("device"), "cpu");
  EXPECT_EQ(value.at("within"), true);
  EXPECT_GT(value.at("results").size(), 100U);
  EXPECT_EQ(value.at("not_compared"), nlohmann::json{"switch_nodes(r:u64 r:u8)"});
  for (const nlohmann::json& row : value.at("results")) {
    EXPECT_EQ(row.at("absolute"), 0.0) << row;
    EXPECT_EQ(row.at("bound").at("relative"), 0.0) << "every rung gives the bits of generic";
  }
}

TEST_F(platform_command_test, refuses_what_it_does_not_know_in_one_line) {
  expect_refused("check", "subcommand");
  expect_refused("check loops", "loops");
  expect_refused("check ops --device gpu", "gpu");
  expect_refused("matrix --device cpu", "device");
  expect_refused("matrix --json no/such/folder/file", "no/such/folder/file");
}

}  // namespace
}  // namespace reprise
