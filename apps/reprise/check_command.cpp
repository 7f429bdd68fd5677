#include "apps/reprise/check_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <tuple>

#include "apps/reprise/check_sdm_command.hpp"
#include "apps/reprise/output.hpp"
#include "apps/reprise/version.hpp"
#include "reprise/platform/check_ops.hpp"

namespace reprise::app {

namespace {

struct typed_options {
  std::string device = "auto";
  output_options output;
};

// All results of one cell in one line, so that what is far away stands out.
struct cell_summary {
  std::size_t outputs = 0;
  std::size_t outside = 0;
  double worst = 0;  // relative
  parity_bound bound;
};

void print(std::FILE* to, const ops_check& checked) {
  std::map<std::tuple<std::string, std::string, std::string>, cell_summary> cells;
  for (const parity_result& r : checked.results) {
    cell_summary& cell = cells[{r.kernel, r.arch, r.variant}];
    ++cell.outputs;
    cell.outside += r.seen.within ? 0 : 1;
    cell.worst = std::max(cell.worst, r.seen.relative);
    cell.bound = r.bound;
  }
  fmt::print(to, "{} against the generic CPU bodies\n", checked.device);
  for (const auto& [name, cell] : cells) {
    const auto& [kernel, arch, variant] = name;
    fmt::print(to, "  {:<54} {:<8} {:<8} {:>3} outputs, worst {:.2g} relative, bound {}{}\n",
               kernel, arch, variant == "default" ? "" : variant, cell.outputs, cell.worst,
               text_of(cell.bound),
               cell.outside == 0 ? "" : fmt::format("; {} OUTSIDE", cell.outside));
  }
  for (const parity_result& r : checked.results) {
    if (r.seen.within) continue;
    fmt::print(to, "outside: {} {} {}, {}, argument {}: {}\n", r.kernel, r.arch, r.variant,
               r.case_name, r.argument,
               r.seen.why.empty() ? fmt::format("element {} is off by {:.3g}, {:.3g} relative",
                                                r.seen.worst, r.seen.absolute, r.seen.relative)
                                  : r.seen.why);
  }
  for (const std::string& kernel : checked.not_compared) {
    fmt::print(to, "not compared: {}, which has no case\n", kernel);
  }
}

// JSON has no infinity.
nlohmann::json number(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json("infinite");
}

nlohmann::json as_json(const ops_check& checked) {
  nlohmann::json results = nlohmann::json::array();
  for (const parity_result& r : checked.results) {
    results.push_back({{"kernel", r.kernel},
                       {"case", r.case_name},
                       {"arch", r.arch},
                       {"variant", r.variant},
                       {"argument", r.argument},
                       {"worst_element", r.seen.worst},
                       {"absolute", number(r.seen.absolute)},
                       {"relative", number(r.seen.relative)},
                       {"bound", {{"absolute", r.bound.absolute}, {"relative", r.bound.relative}}},
                       {"within", r.seen.within},
                       {"why", r.seen.why}});
  }
  return {{"version", version},
          {"device", checked.device},
          {"within", checked.within()},
          {"results", results},
          {"not_compared", checked.not_compared}};
}

std::string failure_of(const ops_check& checked) {
  if (checked.within()) return {};
  if (checked.results.empty()) return fmt::format("{} has no body to compare", checked.device);
  const auto outside =
      std::ranges::count_if(checked.results, [](const parity_result& r) { return !r.seen.within; });
  return fmt::format("{} of {} outputs of {} are outside their bounds", outside,
                     checked.results.size(), checked.device);
}

}  // namespace

void add_check(verb_ref root, int& exit_code) {
  const verb_ref verb =
      root.add_subcommand("check", "hold what a device computes to the CPU, or to known results");
  verb.require_subcommand(1);
  verb.footer("Example: reprise check ops --device cpu");
  const verb_ref ops =
      verb.add_subcommand("ops", "every kernel body of a device, over a table of cases");
  ops.footer("Example: reprise check ops --json");
  const auto typed = std::make_shared<typed_options>();
  ops.add_option("--device", typed->device, "auto, cpu, cuda:N or sim:seed=N [auto]");
  add_output_options(ops, typed->output);
  ops.callback([typed, &exit_code] {
    check_json_target(typed->output);
    const ops_check checked = check_ops(typed->device);
    if (!typed->output.quiet) print(typed->output.people(), checked);
    if (typed->output.json) write_json(typed->output, as_json(checked));
    exit_code = exit_code_of(failure_of(checked));
  });
  add_check_sdm(verb, exit_code);
}

}  // namespace reprise::app
