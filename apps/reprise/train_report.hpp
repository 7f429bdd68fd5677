// A report of the workload `train` as a table for people and as JSON.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "workloads/train/train.hpp"

namespace reprise::app {

struct train_context {
  std::string device;
  std::string picture;  // the file; empty: none was written
};

void print_report(std::FILE* to, const train::train_report& report,
                  const train::train_options& options, const train_context& run);
nlohmann::json report_json(const train::train_report& report, const train::train_options& options,
                           const train_context& run);

// "fp32" or "bf16".
std::string name_of_precision(cast_mode casts);

}  // namespace reprise::app
