// Reading GoogleTest's JSON reports. Whatever is missing is an empty list, not an exception.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace reprise::gate {

enum class verdict : std::uint8_t { passed, failed, skipped };

constexpr const char* name_of(verdict how) {
  switch (how) {
    case verdict::passed: return "passed";
    case verdict::failed: return "failed";
    case verdict::skipped: return "skipped";
  }
  return "?";
}

inline nlohmann::json value_at(const nlohmann::json& object, const char* key) {
  return object.is_object() && object.contains(key) ? object.at(key) : nlohmann::json(nullptr);
}

inline nlohmann::json list_at(const nlohmann::json& object, const char* key) {
  auto list = value_at(object, key);
  return list.is_array() ? list : nlohmann::json::array();
}

// Each test that ran or was skipped; one that a filter left out is not there.
inline void each_test(
    const nlohmann::json& report,
    const std::function<void(const std::string& suite, const std::string& test, verdict)>& see) {
  for (const auto& suite : list_at(report, "testsuites")) {
    for (const auto& test : list_at(suite, "testsuite")) {
      const bool ran = test.value("status", "") == "RUN";
      verdict how = verdict::passed;
      if (test.contains("failures")) {
        how = verdict::failed;
      } else if (test.value("result", "") == "SKIPPED") {
        how = verdict::skipped;
      } else if (!ran) {
        continue;
      }
      see(suite.value("name", ""), test.value("name", ""), how);
    }
  }
}

}  // namespace reprise::gate
