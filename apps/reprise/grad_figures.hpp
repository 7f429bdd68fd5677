// Counts of graphed ops as JSON and as lines of a report; and numbers as they were typed.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>

#include "reprise/grad/counts.hpp"

namespace reprise::app {

nlohmann::json as_json(const grad_counts& counts);

// Forwards, then backwards; what never happened is left out.
void print_calls(std::FILE* to, const grad_counts& counts);

// 0.005 and not the nearest f32 in 17 digits.
nlohmann::json as_typed(float value);

}  // namespace reprise::app
