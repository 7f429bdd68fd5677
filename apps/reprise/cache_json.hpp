// What a cache holds and did, as JSON; and what is not there as null.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "reprise/replay/cache_report.hpp"

namespace reprise::app {

nlohmann::json as_json(const step_counts& counts);
nlohmann::json as_json(const cache_report& report);

template <class Value>
nlohmann::json or_null(const std::optional<Value>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json{};
}

}  // namespace reprise::app
