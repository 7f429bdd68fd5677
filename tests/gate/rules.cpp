#include "tests/gate/rules.hpp"

#include <string>
#include <string_view>

#include "tests/conformance/rules.hpp"
#include "tests/gate/reports.hpp"

namespace reprise::gate {
namespace {

using nlohmann::json;

constexpr int fewest_on_cuda = 3;

// "rule_18_cycles" -> 18; 0 for a suite that is of no rule.
int rule_of(std::string_view suite) {
  constexpr std::string_view prefix = "rule_";
  if (!suite.starts_with(prefix) || suite.size() < prefix.size() + 2) return 0;
  const char tens = suite[prefix.size()];
  const char ones = suite[prefix.size() + 1];
  if (tens < '0' || tens > '9' || ones < '0' || ones > '9') return 0;
  return 10 * (tens - '0') + (ones - '0');
}

// "refuses_a_synchronise/cuda_0" -> "cuda"
std::string device_of(std::string_view test) {
  const auto device = test.substr(test.rfind('/') + 1);
  return std::string{device.substr(0, device.find('_'))};
}

json no_cases() {
  return {{"passed", 0}, {"failed", 0}, {"skipped", 0}};
}

}  // namespace

json rules_of(const std::vector<json>& reports) {
  json rows = json::array();
  for (const auto& rule : test::rules) {
    rows.push_back({{"rule", rule.number},
                    {"says", rule.says},
                    {"cpu", no_cases()},
                    {"cuda", no_cases()},
                    {"faults", json::array()}});
  }
  for (const auto& report : reports) {
    each_test(report, [&](const std::string& suite, const std::string& test, verdict how) {
      const int number = rule_of(suite);
      if (number < 1 || number > static_cast<int>(rows.size())) return;
      auto& row = rows[static_cast<std::size_t>(number - 1)];
      const auto device = device_of(test);
      if (!row.contains(device)) row[device] = no_cases();
      auto& count = row[device][name_of(how)];
      count = count.get<int>() + 1;
      if (how == verdict::failed) row["faults"].push_back(suite + "." + test);
    });
  }
  for (auto& row : rows) {
    const int passed = row["cuda"]["passed"];
    if (passed < fewest_on_cuda) {
      row["faults"].push_back("only " + std::to_string(passed) + " passed on cuda");
    }
  }
  return rows;
}

}  // namespace reprise::gate
