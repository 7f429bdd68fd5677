#include "tests/gate/summary.hpp"

#include <array>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "tests/gate/reports.hpp"
#include "tests/gate/rules.hpp"

namespace reprise::gate {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// What each run of decode must give; scripts/gate.sh has the command of each. With --eager the
// counts are all eager; a twin is the run that must give the same ids.
struct expected_run {
  std::string_view name;
  int prompts;
  bool eager;
  bool golden;    // each prompt is one of golden.json's, and so is its continuation
  bool verified;  // every replayed step was compared with an eager one
  std::string_view twin;
};

constexpr int tokens = 96;

// A tool of compute-sanitizer and the test that it watches.
constexpr std::array watched{
    "memcheck_replay_test",  "memcheck_conformance_test", "memcheck_grad_test",
    "racecheck_replay_test", "initcheck_replay_test",     "racecheck_nn_test",
    "memcheck_ops_test",     "racecheck_sdm_test",        "memcheck_sdm_test"};

constexpr std::array<expected_run, 6> runs{{
    {"one", 1, false, true, false, "one_eager"},
    {"one_eager", 1, true, true, false, {}},
    {"default_prompts", 4, false, false, true, {}},
    {"golden_fp32", 3, false, true, false, {}},
    {"sampled", 4, false, false, false, "sampled_eager"},
    {"sampled_eager", 4, true, false, false, {}},
}};

// Prefill runs eagerly, once a prompt, and gives token 1; the other tokens are steps of the whole
// batch. The first step is captured and the others are replayed.
json planned_steps(const expected_run& run) {
  const int steps = tokens - 1;
  if (run.eager) return {{"captured", 0}, {"replayed", 0}, {"eager", run.prompts + steps}};
  return {{"captured", 1}, {"replayed", steps - 1}, {"eager", run.prompts}};
}

std::string read_line(const fs::path& file) {
  std::ifstream in{file};
  std::string line;
  std::getline(in, line);
  return line;
}

// Null when the file is not there or is no JSON.
json read_or_null(const fs::path& file) {
  std::ifstream in{file};
  if (!in) return nullptr;
  auto value = json::parse(in, nullptr, false);
  return value.is_discarded() ? json(nullptr) : value;
}

std::vector<std::string> names_in(const fs::path& file) {
  std::ifstream in{file};
  return {std::istream_iterator<std::string>{in}, {}};
}

// What a test executable left: one report, or one for each part that ran in a process of its own.
std::vector<std::string> parts_of(const fs::path& folder, const std::string& name) {
  std::vector<std::string> parts;
  for (const auto& part : names_in(folder / (name + ".parts"))) parts.push_back(name + "." + part);
  if (parts.empty()) parts.push_back(name);
  return parts;
}

json test_row(const fs::path& folder, const std::string& name) {
  json row{
      {"name", name}, {"passed", 0}, {"failed", 0}, {"skipped", 0}, {"failures", json::array()}};
  const auto count = [&](const char* what) { row[what] = row[what].get<int>() + 1; };
  for (const auto& part : parts_of(folder, name)) {
    const int failed_before = row["failed"];
    each_test(read_or_null(folder / (part + ".json")),
              [&](const std::string& suite, const std::string& test, verdict how) {
                count(name_of(how));
                if (how == verdict::failed) row["failures"].push_back(suite + "." + test);
              });
    const auto status = read_line(folder / (part + ".rc"));
    if (status != "0" && row["failed"] == failed_before) {
      row["failures"].push_back((part == name ? "" : part + ": ") + "exit status " + status);
    }
  }
  if (row["passed"] == 0) row["failures"].push_back("no test passed");
  return row;
}

json rule_rows(const fs::path& folder) {
  std::vector<json> reports;
  for (const auto& part : parts_of(folder, "conformance_test")) {
    reports.push_back(read_or_null(folder / (part + ".json")));
  }
  return rules_of(reports);
}

// A tool of compute-sanitizer was clean, or could not run; it did not find errors.
bool is_no_fault(const json& sanitizer) {
  return sanitizer == "clean" ||
         (sanitizer.is_string() && sanitizer.get<std::string>().starts_with("not run: "));
}

json texts_of_golden(const json& golden, const json& requests) {
  json faults = json::array();
  for (const auto& request : requests) {
    bool known = false;
    for (const auto& one : list_at(golden, "cases")) {
      if (one.value("prompt", "") != request.value("prompt", "")) continue;
      known = true;
      if (one.value("greedy", "") != request.value("text", "")) {
        faults.push_back("not the golden text after '" + one.value("prompt", "") + "'");
      }
    }
    if (!known) faults.push_back("golden.json has no '" + request.value("prompt", "") + "'");
  }
  return faults;
}

json ids_of(const json& report) {
  json ids = json::array();
  for (const auto& request : list_at(report, "requests")) {
    ids.push_back(value_at(request, "ids"));
  }
  return ids;
}

// By the counts of the seam's calls: a run with --eager makes no graph at all.
bool captured_nothing(const json& report) {
  const auto calls = value_at(report, "calls");
  for (const auto* call : {"capture", "instantiate", "launch"}) {
    if (value_at(calls, call) != 0) return false;
  }
  return true;
}

json decode_row(const fs::path& folder, const expected_run& run, const json& golden) {
  const std::string name{run.name};
  const auto report = read_or_null(folder / (name + ".json"));
  json row{{"name", name}, {"faults", json::array()}};
  auto& faults = row["faults"];
  if (const auto status = read_line(folder / (name + ".rc")); status != "0") {
    faults.push_back("exit status " + status);
  }
  if (!report.is_object()) {
    faults.push_back("no result");
    return row;
  }
  for (const auto* key : {"device", "steps", "eager_reasons", "us_per_token", "bitwise_equal"}) {
    row[key] = value_at(report, key);
  }
  row["planned"] = planned_steps(run);
  if (row["steps"] != row["planned"]) faults.push_back("other steps than planned");
  if (run.eager && !captured_nothing(report)) faults.push_back("its trace shows a capture");
  if (row["device"] != "cuda:0") faults.push_back("ran on another device");

  const auto requests = list_at(report, "requests");
  if (static_cast<int>(requests.size()) != run.prompts)
    faults.push_back("other number of requests");
  if (run.verified && row["bitwise_equal"] != true)
    faults.push_back("not shown to be bitwise equal");
  if (run.golden) {
    for (const auto& fault : texts_of_golden(golden, requests)) faults.push_back(fault);
  }
  if (!run.twin.empty()) {
    const auto twin = read_or_null(folder / (std::string{run.twin} + ".json"));
    if (!twin.is_object() || ids_of(twin) != ids_of(report)) {
      faults.push_back("not the ids of " + std::string{run.twin});
    }
  }
  return row;
}

}  // namespace

json read_json(const fs::path& file) {
  auto value = read_or_null(file);
  if (value.is_null()) throw std::runtime_error{file.string() + " is not there or is no JSON"};
  return value;
}

json summarise(const fs::path& results, const json& golden) {
  json record{{"date", read_line(results / "date")},
              {"device_code", read_line(results / "device_code")},
              {"sanitizer", json::object()}};
  const auto doctor = read_or_null(results / "doctor.json");
  record["toolkit"] = value_at(doctor, "cuda_toolkit");
  record["driver"] = value_at(doctor, "cuda_driver");
  record["card"] = nullptr;
  for (const auto& device : list_at(doctor, "devices")) {
    if (value_at(device, "name") == "cuda:0") record["card"] = value_at(device, "model");
  }

  bool green = record["card"].is_string() && record["device_code"] != "";
  for (const auto* run : watched) {
    record["sanitizer"][run] = read_line(results / "sanitizer" / run);
    green = green && is_no_fault(record["sanitizer"][run]);
  }
  record["tests"] = json::array();
  for (const auto& name : names_in(results / "tests" / "list")) {
    record["tests"].push_back(test_row(results / "tests", name));
    green = green && record["tests"].back()["failures"].empty();
  }
  green = green && !record["tests"].empty();
  record["rules"] = rule_rows(results / "tests");
  for (const auto& row : record["rules"]) green = green && row["faults"].empty();
  record["decode"] = json::array();
  for (const auto& run : runs) {
    record["decode"].push_back(decode_row(results / "decode", run, golden));
    green = green && record["decode"].back()["faults"].empty();
  }
  record["green"] = green;
  return record;
}

std::string refusal(const json& record, const std::string& device_code) {
  if (value_at(record, "device_code") != device_code) {
    return "it is of other device code than this tree's; run ./run gpu-gate again";
  }
  if (value_at(record, "green") != true) return "it is not green";
  return {};
}

}  // namespace reprise::gate
