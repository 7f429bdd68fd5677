// What a cache holds and did, as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "reprise/replay/cache_report.hpp"

namespace reprise::app {

nlohmann::json as_json(const cache_report& report);

}  // namespace reprise::app
