#include "apps/reprise/bench_sim_command.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "apps/reprise/bench_output.hpp"
#include "apps/reprise/output.hpp"
#include "apps/reprise/progress_line.hpp"
#include "apps/reprise/version.hpp"
#include "bench/sim/checks_cost.hpp"
#include "bench/sim/sim_bench.hpp"
#include "reprise/platform/platform.hpp"

namespace reprise::app {

namespace {

// As they were typed.
struct command_line {
  bench::sim_bench_options options;
  std::filesystem::path against;
  std::uint64_t rounds = bench::checks_cost_options{}.rounds;
  output_options output;
};

std::string command_text(const command_line& typed) {
  std::string text = fmt::format("reprise bench sim --operations {} --seeds {}",
                                 typed.options.operations, typed.options.seeds);
  if (!typed.against.empty()) {
    text += fmt::format(" --against {} --rounds {}", typed.against.string(), typed.rounds);
  }
  return text;
}

void print_way(std::FILE* to, std::string_view name, const bench::sim_way& way) {
  const bench::spread& s = way.operations_per_second;
  fmt::print(to, "  {:<28}{:>10.0f}  {:.0f} .. {:.0f}\n", name, s.median, s.p10, s.p90);
}

void print_report(std::FILE* to, const bench::sim_bench_report& report,
                  const std::optional<bench::checks_cost>& cost) {
  fmt::print(to, "operations a second, trivial bodies, one thread; medians of seeds\n");
  print_way(to, "watching memory", report.watched);
  print_way(to, "the schedule alone", report.unwatched);
  fmt::print(to, "  held to {:.0f} with memory watched\n", report.floor);
  if (!cost) {
    fmt::print(to, "\nwhat the checks cost decode: give --against a build without them\n");
    return;
  }
  fmt::print(to,
             "\na decode step on cpu, batch 1, one thread: {:.1f} us with the checks built, "
             "{:.1f} without: {:+.2f} %\n",
             cost->checked_us.median, cost->unchecked_us.median, cost->per_cent);
}

nlohmann::json way_json(const bench::sim_way& way) {
  return {{"operations", way.operations},
          {"operations_per_second", as_json(way.operations_per_second)}};
}

nlohmann::json report_json(const bench::sim_bench_report& report,
                           const std::optional<bench::checks_cost>& cost,
                           const command_line& typed) {
  // The processor that simulates: the last row, always there.
  nlohmann::json value = bench_json("sim", "sim", list_devices().back().model, command_text(typed));
  value["seeds"] = typed.options.seeds;
  value["watching_memory"] = way_json(report.watched);
  value["schedule_alone"] = way_json(report.unwatched);
  value["findings"] = report.findings;
  value["floor_operations_per_second"] = report.floor;
  value["checks_cost"] = nullptr;
  if (cost) {
    value["checks_cost"] = {{"checked_us", as_json(cost->checked_us)},
                            {"unchecked_us", as_json(cost->unchecked_us)},
                            {"per_cent", cost->per_cent},
                            {"limit_per_cent", bench::checks_cost_options{}.limit_per_cent}};
  }
  return value;
}

void run(const command_line& typed, int& exit_code) {
  check_json_target(typed.output);
  std::FILE* const people = typed.output.people();
  progress_line line{people, typed.output.quiet};
  const bench::sim_bench_report report = bench::run_sim_bench(typed.options, line.listener());
  std::optional<bench::checks_cost> cost;
  if (!typed.against.empty()) {
    bench::checks_cost_options how;
    how.checked = std::filesystem::read_symlink("/proc/self/exe");
    how.unchecked = typed.against;
    how.rounds = typed.rounds;
    cost = bench::measure_checks(how, line.listener());
  }
  line.clear();
  if (!typed.output.quiet) print_report(people, report, cost);
  if (typed.output.json) write_json(typed.output, report_json(report, cost, typed));
  exit_code = exit_code_of(report.failure());
}

}  // namespace

void add_bench_sim(verb_ref bench, int& exit_code) {
  const verb_ref verb = bench.add_subcommand(
      "sim", "the simulated GPU: operations a second, and what its checks cost the cpu");
  verb.footer("Example: reprise bench sim --seeds 10 --json");
  const auto typed = std::make_shared<command_line>();
  command_line& t = *typed;
  verb.add_option("--operations", t.options.operations, "of each seed, at least [20000]")
      .option_text("N");
  verb.add_option("--seeds", t.options.seeds, "that are measured [20]").option_text("N");
  verb.add_option("--against", t.against,
                  "the command of a build with -DREPRISE_CHECKS=OFF, to compare decode with")
      .option_text("FILE");
  verb.add_option("--rounds", t.rounds, "of decode, with --against [9]").option_text("N");
  add_output_options(verb, t.output);
  verb.callback([typed, &exit_code] { run(*typed, exit_code); });
}

}  // namespace reprise::app
