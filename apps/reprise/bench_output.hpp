// What the JSON of every bench has, and figures as JSON and as text.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "apps/reprise/cache_json.hpp"
#include "bench/measure/spread.hpp"
#include "reprise/device/device.hpp"

namespace reprise::app {

// bench, device, model of the card or processor, version, command.
nlohmann::json bench_json(std::string_view bench, std::string_view device, std::string_view model,
                          const std::string& command);
nlohmann::json bench_json(std::string_view bench, device_ref device, const std::string& command);

nlohmann::json as_json(const bench::spread& us);

// Nothing where nothing was measured.
std::optional<double> median(const bench::spread& us);

// "12.34"; a dash where there is no figure.
std::string shown_us(std::optional<double> us);

}  // namespace reprise::app
