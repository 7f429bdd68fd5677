// A memory report as a table for people and as JSON.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "workloads/memory/memory.hpp"

namespace reprise::app {

struct memory_context {
  std::string device;
};

void print_report(std::FILE* to, const memory::memory_report& report,
                  const memory::memory_options& options, const memory_context& run);
nlohmann::json report_json(const memory::memory_report& report,
                           const memory::memory_options& options, const memory_context& run);

// "stored", "fp8" or "int4".
std::string name_of_rows(saved_rows rows);

}  // namespace reprise::app
