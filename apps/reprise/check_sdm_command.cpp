#include "apps/reprise/check_sdm_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "apps/reprise/output.hpp"
#include "apps/reprise/sdm_cases.hpp"
#include "apps/reprise/version.hpp"
#include "reprise/platform/check_sdm.hpp"

namespace reprise::app {

namespace {

struct typed_options {
  std::vector<std::string> paths;
  std::string device = "auto";
  output_options output;
};

// The largest errors of a quantity over the chunk sizes of one case.
void print(std::FILE* to, const std::vector<sdm_run>& runs) {
  std::string above;
  for (const sdm_run& run : runs) {
    if (run.name != above) fmt::print(to, "{}\n", run.name);
    above = run.name;
    const bool within = run.within();
    fmt::print(to, "  chunk {:<4} {:<20} {:<8}", run.chunk, run.storage, run.device);
    const auto worst = std::ranges::max_element(run.errors, {}, &sdm_error::relative);
    fmt::print(to, " worst {:.1e} relative ({}), tolerance {:.0e}{}\n", worst->relative,
               worst->quantity, run.tolerance, within ? "" : "  OUTSIDE");
    if (run.not_rewound != 0) {
      fmt::print(to, "    {} elements of the bank were not rewound\n", run.not_rewound);
    }
  }
  fmt::print(to, "\n{:<20} {:<14} {:>10} {:>10}\n", "largest errors", "", "absolute", "relative");
  std::vector<std::pair<std::string, std::string>> rows;
  std::map<std::pair<std::string, std::string>, sdm_error> worst;
  for (const sdm_run& run : runs) {
    for (const sdm_error& e : run.errors) {
      const auto [at, fresh] = worst.try_emplace({run.storage, e.quantity}, e);
      if (fresh) rows.emplace_back(run.storage, e.quantity);
      at->second.absolute = std::max(at->second.absolute, e.absolute);
      at->second.relative = std::max(at->second.relative, e.relative);
    }
  }
  for (const auto& row : rows) {
    const sdm_error& e = worst.at(row);
    fmt::print(to, "{:<20} {:<14} {:>10.2e} {:>10.2e}\n", row.first, row.second, e.absolute,
               e.relative);
  }
}

// JSON has no infinity.
nlohmann::json number(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json("infinite");
}

nlohmann::json as_json(const std::vector<sdm_run>& runs) {
  nlohmann::json all = nlohmann::json::array();
  for (const sdm_run& run : runs) {
    nlohmann::json errors = nlohmann::json::object();
    for (const sdm_error& e : run.errors) {
      errors[e.quantity] = {{"absolute", number(e.absolute)}, {"relative", number(e.relative)}};
    }
    all.push_back({{"case", run.name},
                   {"device", run.device},
                   {"storage", run.storage},
                   {"chunk", run.chunk},
                   {"tolerance", run.tolerance},
                   {"errors", errors},
                   {"not_rewound", run.not_rewound},
                   {"within", run.within()}});
  }
  return {
      {"version", version}, {"within", std::ranges::all_of(runs, &sdm_run::within)}, {"runs", all}};
}

std::string failure_of(const std::vector<sdm_run>& runs) {
  const auto outside =
      std::ranges::count_if(runs, [](const sdm_run& run) { return !run.within(); });
  if (outside == 0) return {};
  return fmt::format("{} of {} runs are outside their tolerance", outside, runs.size());
}

}  // namespace

void add_check_sdm(verb_ref check, int& exit_code) {
  const verb_ref sdm =
      check.add_subcommand("sdm", "the sparse-delta-memory op, over case files with known results");
  sdm.footer(
      "Runs each case at each of its chunk sizes, forward and backward: in f32 and bf16 on\n"
      "the device, and in f64 on the CPU. Errors are over the largest magnitude of a quantity;\n"
      "tolerances are 1e-9 in f64, 2e-5 in f32 and 2e-2 in bf16.\n\n"
      "Example: reprise check sdm cases/ --device cpu --json");
  const auto typed = std::make_shared<typed_options>();
  sdm.add_option("paths", typed->paths, "case files, or folders of them").required();
  sdm.add_option("--device", typed->device, "auto, cpu, cuda:N or sim:seed=N [auto]");
  add_output_options(sdm, typed->output);
  sdm.callback([typed, &exit_code] {
    check_json_target(typed->output);
    const std::vector<std::filesystem::path> paths{typed->paths.begin(), typed->paths.end()};
    check_json_spares(typed->output, paths, "a case file");
    const std::vector<sdm_run> runs = check_sdm(typed->device, read_sdm_cases(paths));
    if (!typed->output.quiet) print(typed->output.people(), runs);
    if (typed->output.json) write_json(typed->output, as_json(runs));
    exit_code = exit_code_of(failure_of(runs));
  });
}

}  // namespace reprise::app
