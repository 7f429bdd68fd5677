// Figures that the reports of all workloads have, as JSON and as text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "reprise/replay/cache_report.hpp"

namespace reprise::app {

// Nothing where there was none of what is counted.
std::optional<double> mean_us(double us, std::uint64_t count);

// "12.3"; a dash where there is no figure. In JSON that is null.
std::string shown_figure(std::optional<double> us);
nlohmann::json figure_json(std::optional<double> us);

std::string megabytes(std::size_t bytes);

// "captured 1, replayed 94, eager 1 (prefill 1)", as a line of a report.
void print_steps(std::FILE* to, const step_counts& counts);
nlohmann::json steps_json(const step_counts& counts);

}  // namespace reprise::app
