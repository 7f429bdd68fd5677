#include "apps/reprise/sim_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/reprise/output.hpp"
#include "apps/reprise/progress_line.hpp"
#include "apps/reprise/sim_run.hpp"
#include "apps/reprise/version.hpp"
#include "reprise/base/error.hpp"

namespace reprise::app {

namespace {

using scenarios::planted_bug;
using scenarios::scenario;

// As they were typed.
struct command_line {
  sim_options options;
  std::optional<std::string> seeds;
  std::optional<std::string> seed;
  bool list = false;
  output_options output;
};

std::uint64_t number_of(std::string_view option, std::string_view typed, std::uint64_t least,
                        std::uint64_t most) {
  std::uint64_t value = 0;
  const char* const end = typed.data() + typed.size();
  const auto [next, failed] = std::from_chars(typed.data(), end, value);
  if (failed != std::errc{} || next != end || value < least || value > most) {
    throw usage_error{
        fmt::format("{} {:?}: not a whole number from {} to {}", option, typed, least, most)};
  }
  return value;
}

sim_options options_of(const command_line& typed) {
  sim_options options = typed.options;
  if (options.names.empty()) options.names.emplace_back("all");
  if (typed.seeds) {
    options.seeds = number_of("--seeds", *typed.seeds, 1, std::uint64_t{1} << 40);
  }
  if (typed.seed) options.seed = number_of("--seed", *typed.seed, 0, ~std::uint64_t{0});
  return options;
}

std::string command_text(const sim_options& options) {
  return fmt::format("reprise sim --scenario {} {} {}{}", fmt::join(options.names, ","),
                     options.seed ? "--seed" : "--seeds", options.seed.value_or(options.seeds),
                     options.planted ? " --planted" : "");
}

void print_list(std::FILE* to, const std::vector<sim_choice>& what) {
  for (const sim_choice& one : what) {
    if (one.bug == nullptr) fmt::print(to, "{}\n    {}\n", one.of->name, one.of->says);
    for (const planted_bug& bug : one.of->bugs) {
      if (one.bug != nullptr && one.bug != &bug) continue;
      fmt::print(to, "  {}/{} ({})\n    {}\n", one.of->name, bug.name, fmt::join(bug.kinds, " or "),
                 bug.says);
    }
  }
}

nlohmann::json list_json(const std::vector<sim_choice>& what) {
  nlohmann::json rows = nlohmann::json::array();
  for (const sim_choice& one : what) {
    nlohmann::json bugs = nlohmann::json::array();
    for (const planted_bug& bug : one.of->bugs) {
      bugs.push_back({{"name", bug.name}, {"says", bug.says}, {"kinds", bug.kinds}});
    }
    rows.push_back({{"name", one.of->name},
                    {"says", one.of->says},
                    {"landmarks", one.of->landmarks},
                    {"planted", std::move(bugs)}});
  }
  return {{"version", version}, {"device", "sim"}, {"scenarios", std::move(rows)}};
}

double ops_per_second(const sim_report& report) {
  return report.us() > 0 ? static_cast<double>(report.operations()) * 1e6 / report.us() : 0;
}

void print_report(std::FILE* to, const sim_report& report) {
  constexpr const char* line = "  {:<28}{:>7}{:>12}{:>10}  {}\n";
  fmt::print(to, line, "scenario", "seeds", "operations", "ms", "");
  for (const sim_row& row : report.scenarios) {
    fmt::print(to, line, row.name, row.seen.seeds, row.seen.operations,
               fmt::format("{:.0f}", row.us / 1e3), row.seen.failures.empty() ? "" : "FAILED");
  }
  if (!report.planted.empty()) fmt::print(to, "\n  planted bugs\n");
  for (const planted_row& row : report.planted) {
    fmt::print(to, "  {:<50}{}\n", row.name, row.text());
  }
  fmt::print(to, "\nscenarios {}, seeds {}, operations {}, {:.0f} a second\n",
             report.scenarios.size(), report.seeds(), report.operations(), ops_per_second(report));
  if (const auto missed = report.landmarks_missed(); !missed.empty()) {
    fmt::print(to, "no seed came to: {}\n", fmt::join(missed, ", "));
  }
}

nlohmann::json report_json(const sim_report& report, const sim_options& options) {
  nlohmann::json rows = nlohmann::json::array();
  for (const sim_row& row : report.scenarios) {
    nlohmann::json failures = nlohmann::json::array();
    for (const failed_seed& failed : row.seen.failures) {
      failures.push_back({{"seed", failed.seed}, {"kind", failed.kind}, {"what", failed.what}});
    }
    rows.push_back({{"name", row.name},
                    {"seeds", row.seen.seeds},
                    {"operations", row.seen.operations},
                    {"failures", std::move(failures)},
                    {"landmarks_missed", row.seen.landmarks_missed}});
  }
  nlohmann::json planted = nlohmann::json::array();
  for (const planted_row& row : report.planted) {
    nlohmann::json found;
    if (row.found) found = {{"seed", row.found->seed}, {"kind", row.found->kind}};
    planted.push_back({{"name", row.name},
                       {"kinds", row.kinds},
                       {"seeds", row.seeds},
                       {"found", std::move(found)},
                       {"as_planted", row.as_planted()}});
  }
  return {{"version", version},
          {"device", "sim"},
          {"command", command_text(options)},
          {"scenarios", std::move(rows)},
          {"planted", std::move(planted)},
          {"seeds", report.seeds()},
          {"failures", report.failures()},
          {"landmarks_missed", report.landmarks_missed()},
          {"operations", report.operations()},
          {"ops_per_second", ops_per_second(report)},
          {"repeat", report.repeat().empty() ? nlohmann::json{} : nlohmann::json(report.repeat())}};
}

// The last line is the command that repeats it, whatever else was printed and where.
int tell_failure(const sim_report& report, const output_options& output) {
  if (report.failures() == 0) return 0;
  std::FILE* const to = output.quiet ? stderr : output.people();
  if (!output.quiet) {
    for (const sim_row& row : report.scenarios) {
      if (!row.seen.failures.empty()) fmt::print(to, "\n{}\n{}", row.name, text_of(row.seen));
    }
  }
  std::fflush(to);
  fmt::print(to, "\nreprise: {}\n{}\n", report.failure(), report.repeat());
  return 1;
}

void run(const command_line& typed, int& exit_code) {
  check_json_target(typed.output);
  const sim_options options = options_of(typed);
  const std::vector<sim_choice> what = chosen(options);
  std::FILE* const people = typed.output.people();
  if (typed.list) {
    if (!typed.output.quiet) print_list(people, what);
    if (typed.output.json) write_json(typed.output, list_json(what));
    return;
  }
  progress_line line{people, typed.output.quiet};
  const sim_report report = run_sim(what, options, line.listener());
  line.clear();
  if (!typed.output.quiet) print_report(people, report);
  if (typed.output.json) write_json(typed.output, report_json(report, options));
  exit_code = tell_failure(report, typed.output);
}

}  // namespace

void add_sim(verb_ref root, int& exit_code) {
  const verb_ref verb = root.add_subcommand(
      "sim", "small programs on the simulated GPU, under one seed after the other");
  verb.footer("Example: reprise sim --scenario forks,decode --seeds 1000 --planted");
  const auto typed = std::make_shared<command_line>();
  command_line& t = *typed;
  verb.add_flag("--list", t.list, "print the scenarios and their planted bugs, and run nothing");
  verb.add_option("--scenario", t.options.names,
                  "a scenario, or a planted bug of one as scenario/bug; may be given again [all]")
      .delimiter(',')
      .option_text("NAME,…|all");
  const option_ref seeds =
      verb.add_option("--seeds", t.seeds, "how many, from seed 1 on [200]").option_text("N");
  const option_ref seed = verb.add_option("--seed", t.seed, "this seed alone, to repeat a failure")
                              .option_text("S")
                              .excludes(seeds);
  verb.add_flag("--planted", t.options.planted, "the planted bugs as well: each must be found")
      .excludes(seed);
  add_output_options(verb, t.output);
  verb.callback([typed, &exit_code] { run(*typed, exit_code); });
}

}  // namespace reprise::app
