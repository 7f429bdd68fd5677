// `reprise matrix` and `reprise check` as a person types them.
#include <nlohmann/json.hpp>

#include <fstream>
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

// One token on one slot of one element, all of it dyadic: it decays by 1, stores 2 with strength
// 1/2 over a row of 1, and reads it.
const nlohmann::json one_token = nlohmann::json::parse(R"({
  "name": "one token", "P": 1, "S": 1, "D": 1, "T": 1, "W": 1, "R": 1, "G": 1, "chunks": [1, 3],
  "inputs": {"bank": [[1]], "k_idx": [[[0]]], "k_val": [[[1]]], "v": [[[2]]], "beta": [[[0.5]]],
             "g": [[[0]]], "q_idx": [[[0]]], "q_val": [[[1]]]},
  "dy": [[[1]]], "d_final_bank": null, "readings": [[[1.5]]], "final_bank": [[1.5]],
  "grads": {"bank": [[0.5]], "k_val": [[[0]]], "v": [[[0.5]]], "beta": [[[1]]],
            "g": [[[0.5]]], "q_val": [[[1.5]]]}})");

class check_sdm_command_test : public platform_command_test {
 protected:
  std::string file_of(const nlohmann::json& value) const {
    const std::string path = testing::TempDir() + "reprise-sdm-case.json";
    std::ofstream{path} << value.dump();
    return path;
  }
};

TEST_F(check_sdm_command_test, runs_each_case_at_each_of_its_chunk_sizes) {
  const nlohmann::json value = json_of("check sdm " + file_of(one_token) + " --device cpu --quiet");
  EXPECT_EQ(value.at("within"), true);
  EXPECT_EQ(value.at("runs").size(), 8U);
  EXPECT_EQ(value.at("runs")[0].at("errors").at("grad g").at("absolute"), 0.0);
  nlohmann::json wrong = one_token;
  wrong["grads"]["g"] = {{{0.75}}};
  const run_result off = run("check sdm " + file_of(wrong) + " --device cpu");
  EXPECT_EQ(off.exit_code, 1);
  EXPECT_NE(off.out.find("OUTSIDE"), std::string::npos) << off.out;
}

TEST_F(check_sdm_command_test, refuses_files_that_are_no_cases_in_one_line) {
  const auto refused = [&](const char* path, const nlohmann::json& value, const char* says) {
    nlohmann::json changed = one_token;
    changed[nlohmann::json::json_pointer{path}] = value;
    expect_refused("check sdm " + file_of(changed), says);
  };
  refused("/inputs/k_idx", {{{1}}}, "no row of its stream");
  refused("/inputs/k_idx", {{{0.5}}}, "no whole number");
  refused("/inputs/k_idx", {{{4294967296}}}, "which is no row");
  refused("/inputs/v", {{{1e39}}}, "no number of f32");
  refused("/inputs/v", {{{"2"}}}, "no number of f32");
  refused("/inputs/v", {{{2, 3}}}, "not of shape [1, 1, 1]");
  refused("/chunks", nlohmann::json::array(), "chunks");
  refused("/chunks", {4294967297}, "chunk");
  refused("/chunks", {0}, "chunks");
  refused("/P", 18446744073709551615U, "63 bits");
  refused("/S", -1, "slots");
  refused("/grads", nullptr, "'bank' is missing");
  expect_refused("check sdm " + testing::TempDir() + "reprise-no-such-file.json", "cannot be read");
  expect_refused("check sdm", "paths");
  const std::string file = file_of(one_token);
  const std::string before = test::contents(file);
  expect_refused("check sdm " + file + " --json " + file, "a case file");
  EXPECT_EQ(test::contents(file), before);
}

}  // namespace
}  // namespace reprise
