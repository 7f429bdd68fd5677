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

// A results folder of a good day; tests spoil one thing of it.
class gate_summary : public testing::Test {
 protected:
  gate_summary() {
    std::string pattern = testing::TempDir() + "reprise-gate-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    folder_ = pattern;
    fs::create_directories(folder_ / "tests");
    fs::create_directories(folder_ / "decode");
    put("date", "2026-01-02T03:04:05Z");
    put("device_code", "abc");
    put("memcheck", "clean");
    put("doctor.json", json{{"cuda_toolkit", "13.0"},
                            {"cuda_driver", "580"},
                            {"devices", {{{"name", "cuda:0"}, {"model", "H200"}}}}});
    put("tests/list", "ops_test");
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

TEST_F(gate_summary, memory_errors_are_not_green_but_a_tool_that_is_not_there_is) {
  put("memcheck", "errors");
  EXPECT_EQ(judged().at("green"), false);
  put("memcheck", "not run: no compute-sanitizer on PATH");
  EXPECT_EQ(judged().at("green"), true);
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
}

}  // namespace
}  // namespace reprise::gate
