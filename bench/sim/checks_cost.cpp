#include "bench/sim/checks_cost.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/measure/program.hpp"
#include "reprise/base/error.hpp"

namespace reprise::bench {

namespace {

// Microseconds of a decoded token, as this build of the command measures them.
double step_us(const std::filesystem::path& command, std::int64_t tokens) {
  const program_output said =
      run_program({command.string(), "bench", "decode", "--device", "cpu", "--threads", "1",
                   "--batch-sizes", "1", "--tokens", std::to_string(tokens), "--quiet", "--json"},
                  program_errors::dropped);
  const auto value = nlohmann::json::parse(said.text, nullptr, false);
  if (value.is_discarded() || !value.contains("rows") || value["rows"].empty()) {
    throw usage_error{
        fmt::format("bench sim: {} gave no figures; give the command `reprise` of a build with "
                    "-DREPRISE_CHECKS=OFF",
                    command.string())};
  }
  return value["rows"][0]["measured_us"].get<double>();
}

}  // namespace

checks_cost measure_checks(const checks_cost_options& options, const progress& tell) {
  std::vector<double> checked;
  std::vector<double> unchecked;
  for (std::uint64_t round = 0; round < options.rounds; ++round) {
    tell("checks", round, options.rounds);
    checked.push_back(step_us(options.checked, options.tokens));
    unchecked.push_back(step_us(options.unchecked, options.tokens));
  }
  checks_cost cost;
  cost.checked_us = spread_of(std::move(checked));
  cost.unchecked_us = spread_of(std::move(unchecked));
  cost.per_cent = 100 * (cost.checked_us.median / cost.unchecked_us.median - 1);
  return cost;
}

}  // namespace reprise::bench
