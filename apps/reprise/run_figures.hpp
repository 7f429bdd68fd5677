// Figures that the reports of all workloads have, as text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "reprise/replay/cache_report.hpp"

namespace reprise::app {

// Nothing where there was none of what is counted.
std::optional<double> mean_us(double us, std::uint64_t count);

// "12.3"; a dash where there is no figure.
std::string shown_figure(std::optional<double> us);

std::string megabytes(std::size_t bytes);

// "captured 1, replayed 94, eager 1 (prefill 1)", as a line of a report.
void print_steps(std::FILE* to, const step_counts& counts, std::string_view what = "steps");

}  // namespace reprise::app
