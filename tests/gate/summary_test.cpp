// The GPU gate's judge: a good day is green, and each thing that can go wrong is seen.
#include "tests/gate/summary.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace reprise::gate {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json one_request(const std::string& prompt, const std::string& text) {
  return {{"prompt", prompt}, {"text", text}, {"ids", {1, 2, 3}}};
}

json decoded(json requests, int captured, int replayed, int eager) {
  return {{"device", "cuda:0"},
          {"bitwise_equal", true},
          {"steps", {{"captured", captured}, {"replayed", replayed}, {"eager", eager}}},
          {"us_per_token", {{"replayed", 30.5}, {"eager", 250}}},
          {"calls", {{"capture", captured}, {"instantiate", captured}, {"launch", replayed}}},
          {"requests", std::move(requests)}};
}

constexpr const char* sanitizer_runs[] = {
    "memcheck_replay_test",  "memcheck_conformance_test", "memcheck_grad_test",
    "racecheck_replay_test", "initcheck_replay_test",     "racecheck_nn_test",
    "memcheck_ops_test",     "racecheck_sdm_test",        "memcheck_sdm_test"};

// A results folder of a good day; tests spoil one thing of it.
class gate_summary : public testing::Test {
 protected:
  gate_summary() {
    std::string pattern = testing::TempDir() + "reprise-gate-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    folder_ = pattern;
    fs::create_directories(folder_ / "tests");
    fs::create_directories(folder_ / "decode");
    fs::create_directories(folder_ / "sanitizer");
    put("date", "2026-01-02T03:04:05Z");
    put("device_code", "abc");
    for (const auto* run : sanitizer_runs) put(fs::path{"sanitizer"} / run, "clean");
    put("doctor.json", json{{"cuda_toolkit", "13.0"},
                            {"cuda_driver", "580"},
                            {"devices", {{{"name", "cuda:0"}, {"model", "H200"}}}}});
    put("tests/list", "ops_test conformance_test");
    put("tests/conformance_test.parts", "rest rule_18_cycles");
    put("tests/conformance_test.rest.rc", "0");
    put("tests/conformance_test.rest.json", tests_of_rules());
    put("tests/conformance_test.rule_18_cycles.rc", "0");
    put("tests/conformance_test.rule_18_cycles.json", {{"testsuites", json::array()}});
    put("tests/ops_test.rc", "0");
    put("tests/ops_test.json", tests_of_ops(json::object()));
    const json golden_one = {one_request("In", "A")};
    const json four(4, one_request("In", "A"));
    run("one", decoded(golden_one, 1, 94, 1));
    run("one_eager", decoded(golden_one, 0, 0, 96));
    run("default_prompts", decoded(four, 1, 94, 4));
    run("golden_fp32", decoded(json(3, one_request("In", "A")), 1, 94, 3));
    run("sampled", decoded(four, 1, 94, 4));
    run("sampled_eager", decoded(four, 0, 0, 99));
  }
  ~gate_summary() override { fs::remove_all(folder_); }

  static json tests_of_ops(const json& second) {
    json tests = {{{"name", "agrees"}, {"status", "RUN"}, {"result", "COMPLETED"}},
                  {{"name", "needs_two"}, {"status", "RUN"}, {"result", "SKIPPED"}}};
    tests[1].update(second);
    return {{"testsuites", {{{"name", "ops"}, {"testsuite", tests}}}}};
  }

  // Three cases of each rule on each device.
  static json tests_of_rules() {
    json suites = json::array();
    for (int rule = 1; rule <= 23; ++rule) {
      json tests = json::array();
      for (const auto* test : {"a", "b", "c"}) {
        for (const auto* device : {"cpu", "cuda_0"}) {
          tests.push_back({{"name", std::string{test} + "/" + device},
                           {"status", "RUN"},
                           {"result", "COMPLETED"}});
        }
      }
      suites.push_back({{"name", (rule < 10 ? "rule_0" : "rule_") + std::to_string(rule)},
                        {"testsuite", std::move(tests)}});
    }
    return {{"testsuites", std::move(suites)}};
  }

  void put(const fs::path& name, const json& what) const {
    std::ofstream{folder_ / name} << (what.is_string() ? what.get<std::string>() : what.dump());
  }

  void run(const std::string& name, const json& report) const {
    put("decode/" + name + ".json", report);
    put("decode/" + name + ".rc", "0");
  }

  json judged() const {
    return summarise(folder_, {{"cases", {{{"prompt", "In"}, {"greedy", "A"}}}}});
  }

  void remove(const fs::path& name) const { fs::remove(folder_ / name); }

 private:
  fs::path folder_;
};

TEST_F(gate_summary, a_good_day_is_green) {
  const auto record = judged();
  EXPECT_EQ(record.at("green"), true) << record.dump(1);
  EXPECT_EQ(record.at("card"), "H200");
  EXPECT_EQ(record.at("tests").at(0).at("passed"), 1);
  EXPECT_EQ(record.at("tests").at(0).at("skipped"), 1);
  EXPECT_EQ(refusal(record, "abc"), "");
}

TEST_F(gate_summary, a_failed_test_is_named) {
  put("tests/ops_test.json", tests_of_ops({{"failures", {{{"failure", "1 != 2"}}}}}));
  put("tests/ops_test.rc", "1");
  const auto record = judged();
  EXPECT_EQ(record.at("green"), false);
  EXPECT_EQ(record.at("tests").at(0).at("failed"), 1);
  EXPECT_EQ(record.at("tests").at(0).at("failures"), json{"ops.needs_two"});
}

TEST_F(gate_summary, a_test_that_dies_without_a_report_is_not_green) {
  remove("tests/ops_test.json");
  put("tests/ops_test.rc", "139");
  EXPECT_EQ(judged().at("green"), false);
  EXPECT_EQ(judged().at("tests").at(0).at("failures").at(0), "exit status 139");
}

TEST_F(gate_summary, no_tests_at_all_are_not_green) {
  put("tests/list", "");
  EXPECT_EQ(judged().at("green"), false);
}

TEST_F(gate_summary, a_run_of_decode_that_is_missing_is_not_green) {
  remove("decode/sampled_eager.json");
  EXPECT_EQ(judged().at("green"), false);
}

TEST_F(gate_summary, an_unplanned_eager_step_is_not_green) {
  run("one", decoded({one_request("In", "A")}, 1, 93, 2));
  EXPECT_EQ(judged().at("green"), false);
  EXPECT_EQ(judged().at("decode").at(0).at("faults"), json{"other steps than planned"});
}

TEST_F(gate_summary, another_text_than_the_golden_one_is_not_green) {
  run("golden_fp32", decoded(json(3, one_request("In", "B")), 1, 94, 3));
  EXPECT_EQ(judged().at("green"), false);
}

TEST_F(gate_summary, other_ids_than_the_eager_run_are_not_green) {
  auto requests = json(4, one_request("In", "A"));
  requests[2]["ids"] = {1, 2, 4};
  run("sampled_eager", decoded(requests, 0, 0, 99));
  EXPECT_EQ(judged().at("green"), false);
}

TEST_F(gate_summary, a_verified_run_must_say_that_it_is_bitwise_equal) {
  auto report = decoded(json(4, one_request("In", "A")), 1, 94, 4);
  report["bitwise_equal"] = nullptr;
  run("default_prompts", report);
  EXPECT_EQ(judged().at("green"), false);
}

TEST_F(gate_summary, an_eager_run_that_captured_something_is_not_green) {
  auto report = decoded({one_request("In", "A")}, 0, 0, 96);
  report["calls"]["capture"] = 1;
  run("one_eager", report);
  EXPECT_EQ(judged().at("green"), false);
}

TEST_F(gate_summary, a_run_on_the_cpu_is_not_green) {
  auto report = decoded({one_request("In", "A")}, 1, 94, 1);
  report["device"] = "cpu";
  run("one", report);
  EXPECT_EQ(judged().at("green"), false);
}

TEST_F(gate_summary, errors_of_a_sanitizer_are_not_green_but_a_tool_that_is_not_there_is) {
  for (const auto* run : sanitizer_runs) {
    const auto file = fs::path{"sanitizer"} / run;
    put(file, "errors");
    EXPECT_EQ(judged().at("green"), false) << run;
    put(file, "not run: no compute-sanitizer on PATH");
    EXPECT_EQ(judged().at("green"), true) << run;
    EXPECT_EQ(judged().at("sanitizer").at(run), "not run: no compute-sanitizer on PATH");
    remove(file);
    EXPECT_EQ(judged().at("green"), false) << run << " left nothing";
    put(file, "clean");
  }
}

TEST_F(gate_summary, each_rule_is_counted_on_each_device) {
  const auto rules = judged().at("rules");
  ASSERT_EQ(rules.size(), 23u);
  for (const auto& row : rules) {
    EXPECT_EQ(row.at("cuda"), (json{{"passed", 3}, {"failed", 0}, {"skipped", 0}}));
    EXPECT_EQ(row.at("cpu"), (json{{"passed", 3}, {"failed", 0}, {"skipped", 0}}));
    EXPECT_NE(row.at("says"), "");
  }
  EXPECT_EQ(rules.at(4).at("rule"), 5);
  EXPECT_EQ(judged().at("tests").at(1).at("passed"), 138);
}

TEST_F(gate_summary, a_rule_whose_case_fails_is_not_green_and_names_it) {
  auto report = tests_of_rules();
  auto& test = report["testsuites"][4]["testsuite"][3];
  test["failures"] = {{{"failure", "1 != 2"}}};
  put("tests/conformance_test.rest.json", report);
  put("tests/conformance_test.rest.rc", "1");
  const auto record = judged();
  EXPECT_EQ(record.at("green"), false);
  EXPECT_EQ(record.at("rules").at(4).at("faults"),
            (json{"rule_05.b/cuda_0", "only 2 passed on cuda"}));
  EXPECT_EQ(record.at("tests").at(1).at("failures"), json{"rule_05.b/cuda_0"});
}

TEST_F(gate_summary, a_rule_with_fewer_than_three_cases_on_cuda_is_not_green) {
  auto report = tests_of_rules();
  report["testsuites"][22]["testsuite"][5]["result"] = "SKIPPED";
  put("tests/conformance_test.rest.json", report);
  const auto record = judged();
  EXPECT_EQ(record.at("green"), false);
  EXPECT_EQ(record.at("rules").at(22).at("faults"), json{"only 2 passed on cuda"});
  EXPECT_EQ(record.at("rules").at(22).at("cuda").at("skipped"), 1);
}

TEST_F(gate_summary, a_further_suite_of_a_rule_counts_for_it) {
  put("tests/conformance_test.rule_18_cycles.json",
      {{"testsuites",
        {{{"name", "rule_18_cycles"},
          {"testsuite",
           {{{"name", "of_a_stream/cuda_0"}, {"status", "RUN"}, {"result", "COMPLETED"}}}}}}}});
  EXPECT_EQ(judged().at("rules").at(17).at("cuda").at("passed"), 4);
  EXPECT_EQ(judged().at("green"), true);
}

TEST_F(gate_summary, a_part_that_dies_without_a_report_is_not_green_and_named) {
  remove("tests/conformance_test.rule_18_cycles.json");
  put("tests/conformance_test.rule_18_cycles.rc", "139");
  EXPECT_EQ(judged().at("green"), false);
  EXPECT_EQ(judged().at("tests").at(1).at("failures"),
            json{"conformance_test.rule_18_cycles: exit status 139"});
}

TEST_F(gate_summary, a_suite_that_did_not_run_at_all_is_not_green) {
  put("tests/list", "ops_test");
  for (const auto* part : {"rest", "rule_18_cycles"}) {
    remove("tests/conformance_test." + std::string{part} + ".json");
  }
  EXPECT_EQ(judged().at("green"), false);
}

TEST_F(gate_summary, a_stale_or_red_record_is_refused) {
  auto record = judged();
  EXPECT_NE(refusal(record, "abd"), "");
  record["green"] = false;
  EXPECT_NE(refusal(record, "abc"), "");
  EXPECT_NE(refusal(json::array(), "abc"), "");
}

TEST_F(gate_summary, the_page_names_card_counts_and_faults) {
  run("one", decoded({one_request("In", "B")}, 1, 94, 1));
  const auto text = page(judged());
  EXPECT_NE(text.find("| card | H200 |"), std::string::npos) << text;
  EXPECT_NE(text.find("| one | 1 / 94 / 1 | 1 / 94 / 1 | 30.5 | 250.0 | not the golden text"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("**not green**"), std::string::npos) << text;
  EXPECT_NE(text.find("| compute-sanitizer racecheck_replay_test | clean |"), std::string::npos)
      << text;
  EXPECT_NE(text.find("| 8 | A capture of nothing is a valid graph, whose launch does nothing. | 3 "
                      "| 3 |  |"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace reprise::gate
