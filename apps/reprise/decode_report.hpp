// A decode report as a table for people and as JSON.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "reprise/device/counting.hpp"
#include "workloads/decode/decode.hpp"

namespace reprise::app {

struct decode_context {
  std::string device;
  std::string model;
  bool byte_tokens = false;
  std::uint64_t seed = 0;
};

void print_report(std::FILE* to, const decode::decode_report& report, const decode_context& run);
nlohmann::json report_json(const decode::decode_report& report, const decode_context& run,
                           const call_counts& calls);

}  // namespace reprise::app
