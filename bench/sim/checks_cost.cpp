#include "bench/sim/checks_cost.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reprise/base/error.hpp"

namespace reprise::bench {

namespace {

// In single quotes for the shell.
std::string quoted(const std::filesystem::path& path) {
  std::string text = "'";
  for (const char c : path.string()) text += c == '\'' ? std::string{"'\\''"} : std::string{c};
  return text + "'";
}

struct closes {
  void operator()(std::FILE* pipe) const { pclose(pipe); }
};

double step_us(const std::filesystem::path& command, std::int64_t tokens) {
  const std::string line = fmt::format(
      "{} bench decode --device cpu --threads 1 --batch-sizes 1 --tokens {} --quiet --json "
      "2>/dev/null",
      quoted(command), tokens);
  const std::unique_ptr<std::FILE, closes> pipe{popen(line.c_str(), "r")};
  std::string text;
  std::array<char, 4096> part{};
  if (pipe) {
    while (const std::size_t got = std::fread(part.data(), 1, part.size(), pipe.get())) {
      text.append(part.data(), got);
    }
  }
  const auto value = nlohmann::json::parse(text, nullptr, false);
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
