// What `bench tap` found, as text and as JSON.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>

#include "bench/tap/tap_bench.hpp"

namespace reprise::app {

void print_report(std::FILE* to, const bench::tap_bench_report& report, device_ref device);

// Beside what the JSON of every bench has.
void add_report(nlohmann::json& to, const bench::tap_bench_report& report);

}  // namespace reprise::app
