#include "apps/reprise/bench_replay_command.hpp"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "apps/reprise/bench_output.hpp"
#include "apps/reprise/output.hpp"
#include "apps/reprise/progress_line.hpp"
#include "bench/replay/chain.hpp"
#include "bench/replay/replay_bench.hpp"
#include "reprise/platform/platform.hpp"

namespace reprise::app {

namespace {

using bench::contest;
using bench::replay_bench_report;
using bench::replay_row;

// As they were typed.
struct command_line {
  std::string device = "auto";
  bench::replay_bench_options options;
  output_options output;
};

std::string device_time_text(const replay_bench_report& report) {
  return report.timed_by_events ? "between two CUDA events around the call"
                                : "host time from the call until the stream was synchronised";
}

std::string command_text(const command_line& typed, device_ref device) {
  return fmt::format("reprise bench replay --device {} --nodes {} --repeats {}", device.name(),
                     fmt::join(typed.options.nodes, ","), typed.options.repeats);
}

void print_rows(std::FILE* to, const replay_bench_report& report) {
  constexpr const char* line = "  {:>6}  {:<7}{:>6}{:>8}{:>11}  {:<22}{:>12}\n";
  fmt::print(to, line, "nodes", "how", "facts", "staged", "host us", "p10 .. p90", "device us");
  for (const replay_row& row : report.rows) {
    fmt::print(to, line, row.nodes, name_of(row.how),
               row.how == contest::replay ? fmt::to_string(row.facts) : "-", row.staged ? 1 : 0,
               shown_us(median(row.host_us)), shown_range(row.host_us),
               shown_us(median(row.device_us)));
  }
}

void print_added(std::FILE* to, const replay_bench_report& report) {
  if (report.added.empty()) {
    fmt::print(to, "\n  {}\n", no_bare_launch);
    return;
  }
  fmt::print(to, "\n  a replay adds to the host time of the bare launch, in us\n");
  constexpr const char* line = "  {:>6}  {:>6}{:>8}{:>9}   {}\n";
  fmt::print(to, line, "nodes", "facts", "staged", "adds", "over a bare copy as well");
  for (const bench::added_time& cell : report.added) {
    fmt::print(to, line, cell.nodes, cell.facts, cell.staged ? 1 : 0, shown_us(cell.us),
               shown_us(cell.staged ? std::optional{cell.us_over_copy} : std::nullopt));
  }
}

void print_report(std::FILE* to, const replay_bench_report& report, device_ref device,
                  const command_line& typed) {
  fmt::print(to, "{}, {}: {} rounds, medians\n", device.name(), device.traits().model,
             typed.options.repeats);
  fmt::print(to, "  host us: the call alone, nothing queued before it\n  device us: {}\n\n",
             device_time_text(report));
  print_rows(to, report);
  print_added(to, report);
}

nlohmann::json row_json(const replay_row& row) {
  const auto of_cache = [&](const nlohmann::json& value) {
    return row.how == contest::bare ? nlohmann::json{} : value;
  };
  return {{"nodes", row.nodes},
          {"variant", name_of(row.how)},
          {"facts", row.how == contest::replay ? nlohmann::json(row.facts) : nlohmann::json{}},
          {"staged", row.staged ? 1 : 0},
          {"host_us", as_json(row.host_us)},
          {"device_us", as_json(row.device_us)},
          {"calls", row.calls},
          {"steps", of_cache(as_json(row.counts))},
          {"bitwise_equal", row.measured ? nlohmann::json(row.equal) : nlohmann::json{}}};
}

nlohmann::json report_json(const replay_bench_report& report, device_ref device,
                           const command_line& typed) {
  nlohmann::json value = bench_json("replay", device, command_text(typed, device));
  value["repeats"] = typed.options.repeats;
  value["node"] =
      fmt::format("rms_norm of {} rows of {} floats", bench::chain_rows, bench::chain_width);
  value["staged_bytes"] = bench::chain_bytes;
  value["host_time"] = "of the call alone, with nothing queued before it";
  value["device_time"] = device_time_text(report);
  value["no_bare_because"] = report.bare ? nlohmann::json{} : nlohmann::json(no_bare_launch);
  value["rows"] = nlohmann::json::array();
  for (const replay_row& row : report.rows) value["rows"].push_back(row_json(row));
  value["adds_us"] = nlohmann::json::array();
  for (const bench::added_time& cell : report.added) {
    value["adds_us"].push_back(
        {{"nodes", cell.nodes},
         {"facts", cell.facts},
         {"staged", cell.staged ? 1 : 0},
         {"us", cell.us},
         {"us_over_bare_copy",
          cell.staged ? nlohmann::json(cell.us_over_copy) : nlohmann::json{}}});
  }
  return value;
}

void run(const command_line& typed, int& exit_code) {
  check_json_target(typed.output);
  const device opened = open_device(typed.device);
  std::FILE* const people = typed.output.people();
  progress_line line{people, typed.output.quiet};
  const replay_bench_report report =
      bench::run_replay_bench(opened, typed.options, line.listener());
  line.clear();
  if (!typed.output.quiet) print_report(people, report, opened, typed);
  if (typed.output.json) write_json(typed.output, report_json(report, opened, typed));
  exit_code = exit_code_of(report.failure());
}

}  // namespace

void add_bench_replay(verb_ref bench, int& exit_code) {
  const verb_ref verb = bench.add_subcommand(
      "replay", "eager launches, a bare graph launch and replays, side by side");
  verb.footer("Example: reprise bench replay --device auto --nodes 10,100 --json");
  const auto typed = std::make_shared<command_line>();
  command_line& t = *typed;
  verb.add_option("--nodes", t.options.nodes, "kernels in the graph [10,100,1000]")
      .delimiter(',')
      .option_text("N,N,…");
  verb.add_option("--repeats", t.options.repeats, "rounds that are measured [500]")
      .option_text("N");
  verb.add_option("--device", t.device, "auto, cpu, cuda:N or sim:seed=N [auto]")
      .option_text("NAME");
  add_output_options(verb, t.output);
  verb.callback([typed, &exit_code] { run(*typed, exit_code); });
}

}  // namespace reprise::app
