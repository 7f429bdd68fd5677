// What the JSON of every bench has, and figures as JSON and as text.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "apps/reprise/cache_json.hpp"
#include "bench/measure/call_figure.hpp"
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

// What it is, us, the floor and floor_us, what it adds, and whether the limit was kept.
nlohmann::json as_json(const bench::call_figure& figure);

// "12.34"; a dash where there is no figure.
std::string shown_us(std::optional<double> us);
// "11.20 .. 13.05"; a dash where nothing was measured.
std::string shown_range(const bench::spread& us);
// "at most 1.50: kept"; empty where there is no limit.
std::string verdict_of(const bench::call_figure& figure);

// Why figures stand beside no bare launch.
inline constexpr const char* no_bare_launch =
    "this device has no CUDA graphs, so there is no bare launch to compare with";

}  // namespace reprise::app
