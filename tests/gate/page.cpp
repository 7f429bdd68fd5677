// docs/gpu.md: the record of the GPU gate as a page.
#include <algorithm>
#include <iomanip>
#include <sstream>
#include <string>
#include <vector>

#include "tests/gate/summary.hpp"

namespace reprise::gate {
namespace {

using nlohmann::json;

// A value as a person reads it: a text without its quotes, nothing for null.
std::string shown(const json& value) {
  if (value.is_null()) return {};
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string joined(const json& texts) {
  std::string all;
  for (const auto& text : texts) all += (all.empty() ? "" : "; ") + shown(text);
  return all;
}

// "12", "12, 1 skipped", "11, 1 failed": nothing where nothing ran.
std::string cases(const json& counts) {
  if (!counts.is_object()) return {};
  std::string text = shown(counts.value("passed", json{}));
  for (const auto* key : {"failed", "skipped"}) {
    if (const auto count = counts.value(key, json{}); count != 0) {
      text += ", " + shown(count) + " " + key;
    }
  }
  return text;
}

// The card first, then whatever else ran.
std::vector<std::string> devices_of(const json& rules) {
  std::vector<std::string> devices{"cuda"};
  for (const auto& row : rules) {
    for (const auto& [key, value] : row.items()) {
      const bool known = std::ranges::find(devices, key) != devices.end();
      if (value.is_object() && !known) devices.push_back(key);
    }
  }
  return devices;
}

std::string steps(const json& counts) {
  if (!counts.is_object()) return {};
  return shown(counts.value("captured", json{})) + " / " + shown(counts.value("replayed", json{})) +
         " / " + shown(counts.value("eager", json{}));
}

}  // namespace

std::string page(const json& record) {
  std::ostringstream out;
  out << "# What a GPU said\n\n"
      << "Written by `./run gpu-gate` from `docs/gpu.json`; HACKING.md says how. A test fails "
         "when\n"
      << "device code changes after it.\n\n"
      << "| | |\n|---|---|\n"
      << "| result | " << (record.value("green", false) ? "green" : "**not green**") << " |\n";
  for (const auto* key : {"date", "card", "driver", "toolkit", "device_code"}) {
    out << "| " << key << " | " << shown(record.value(key, json{})) << " |\n";
  }
  const auto sanitizer = record.value("sanitizer", json::object());
  for (const auto& [run, said] : sanitizer.items()) {
    out << "| compute-sanitizer " << run << " | " << shown(said) << " |\n";
  }

  out << "\n## Tests\n\n| executable | passed | failed | skipped | |\n|---|--:|--:|--:|---|\n";
  for (const auto& row : record.value("tests", json::array())) {
    out << "| " << shown(row.at("name")) << " | " << row.at("passed") << " | " << row.at("failed")
        << " | " << row.at("skipped") << " | " << joined(row.at("failures")) << " |\n";
  }

  const auto rules = record.value("rules", json::array());
  const auto devices = devices_of(rules);
  out << "\n## Rules\n\n"
      << "Cases of `tests/conformance` that passed, rule by rule.\n\n| | rule |";
  for (const auto& device : devices) out << " " << device << " |";
  out << " |\n|--:|---|";
  for (std::size_t i = 0; i <= devices.size(); ++i) out << "---|";
  out << "\n";
  for (const auto& row : rules) {
    out << "| " << row.at("rule") << " | " << shown(row.at("says")) << " | ";
    for (const auto& device : devices) out << cases(row.value(device, json{})) << " | ";
    out << joined(row.at("faults")) << " |\n";
  }

  out << "\n## decode\n\n"
      << "96 tokens of the shipped model; `scripts/gate.sh` has the commands. Steps are captured "
         "/\n"
      << "replayed / eager, as planned and as counted; times are microseconds per token.\n\n"
      << "| run | planned | counted | replayed | eager | faults |\n|---|---|---|--:|--:|---|\n";
  for (const auto& row : record.value("decode", json::array())) {
    const auto times = row.value("us_per_token", json{});
    const auto time = [&](const char* how) {
      const auto us = times.is_object() ? times.value(how, json{}) : json{};
      std::ostringstream text;
      if (us.is_number()) text << std::fixed << std::setprecision(1) << us.get<double>();
      return text.str();
    };
    out << "| " << shown(row.at("name")) << " | " << steps(row.value("planned", json{})) << " | "
        << steps(row.value("steps", json{})) << " | " << time("replayed") << " | " << time("eager")
        << " | " << joined(row.at("faults")) << " |\n";
  }
  return out.str();
}

}  // namespace reprise::gate
