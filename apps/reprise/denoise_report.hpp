// A denoise report as a table for people and as JSON.
#pragma once

#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "workloads/denoise/denoise.hpp"

namespace reprise::app {

struct denoise_context {
  std::string device;
  std::uint64_t seed = 0;
  std::string sheet;  // the file it went to; empty: none
};

void print_report(std::FILE* to, const denoise::denoise_report& report,
                  const denoise::denoise_options& options, const denoise_context& run);
// Why steps ran eagerly, a line for each rule with its first reason in full.
void print_explanation(std::FILE* to, const denoise::denoise_report& report);
nlohmann::json report_json(const denoise::denoise_report& report,
                           const denoise::denoise_options& options, const denoise_context& run);

}  // namespace reprise::app
