#include "apps/reprise/bench_cache_command.hpp"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>

#include "apps/reprise/bench_output.hpp"
#include "apps/reprise/output.hpp"
#include "apps/reprise/progress_line.hpp"
#include "bench/cache/cache_bench.hpp"
#include "reprise/platform/platform.hpp"

namespace reprise::app {

namespace {

using bench::cache_bench_report;
using bench::call_figure;
using bench::held_bytes;

// As they were typed.
struct command_line {
  std::string device = "auto";
  bench::cache_bench_options options;
  output_options output;
};

std::string command_text(const command_line& typed, device_ref device) {
  const bench::cache_bench_options& o = typed.options;
  return fmt::format(
      "reprise bench cache --device {} --nodes {} --recordings {} --repeats {} --captures {} "
      "--cycles {}",
      device.name(), fmt::join(o.nodes, ","), o.recordings, o.repeats, o.captures, o.cycles);
}

std::vector<call_figure> figures_of(const cache_bench_report& report) {
  std::vector<call_figure> all = report.keys.figures;
  all.push_back(report.keys.prepare);
  for (const call_figure& one : report.captures.figures) all.push_back(one);
  return all;
}

void print_figures(std::FILE* to, const cache_bench_report& report) {
  constexpr const char* line = "  {:<26}{:>11}  {:<22}{:<26}{:>11}{:>10}  {}\n";
  fmt::print(to, line, "host time, us", "median", "p10 .. p90", "floor", "its median", "adds", "");
  for (const call_figure& f : figures_of(report)) {
    fmt::print(to, line, f.what, shown_us(median(f.us)), shown_range(f.us), f.floor,
               shown_us(median(f.floor_us)), shown_us(f.adds_us()), verdict_of(f));
  }
}

void print_captures(std::FILE* to, const cache_bench_report& report) {
  constexpr const char* line = "  {:>6}{:>10}{:>10}{:>15}{:>14}{:>10}{:>10}\n";
  fmt::print(to, "\n  recording, us a node\n");
  fmt::print(to, line, "nodes", "warm-up", "capture", "instantiation", "first replay", "total",
             "floor");
  for (const bench::capture_row& row : report.captures.rows) {
    fmt::print(to, line, row.nodes, shown_us(median(row.warm_up)), shown_us(median(row.in_capture)),
               shown_us(median(row.instantiation)), shown_us(median(row.first_replay)),
               shown_us(median(row.total)), shown_us(median(row.floor)));
  }
}

void print_cycles(std::FILE* to, const bench::cycle_report& cycles) {
  constexpr const char* line = "  {:<30}{:>16}{:>16}{:>12}\n";
  fmt::print(to, "\n  {} cycles of capture and eviction; may grow by {} bytes\n", cycles.cycles,
             bench::growth_limit);
  fmt::print(to, line, "bytes", fmt::format("after {}", cycles.warm), "at the end", "growth");
  const auto row = [&](const char* what, std::size_t held_bytes::*of, std::size_t growth) {
    fmt::print(to, line, what, cycles.after_warm_up.*of, cycles.at_end.*of, growth);
  };
  row("of the process, resident", &held_bytes::process, cycles.process_growth());
  if (cycles.device_is_apart) {
    row("of the device, in use", &held_bytes::device, cycles.device_growth());
  }
  row("held by Reprise", &held_bytes::own, cycles.own_growth());
}

void print_report(std::FILE* to, const cache_bench_report& report, device_ref device,
                  const command_line& typed) {
  fmt::print(to, "{}, {}: {} rounds; {} nodes, {} facts, {} other recordings\n\n", device.name(),
             device.traits().model, typed.options.repeats, typed.options.nodes.front(),
             bench::cache_facts, typed.options.recordings);
  print_figures(to, report);
  if (!report.bare) fmt::print(to, "  {}\n", no_bare_launch);
  print_captures(to, report);
  print_cycles(to, report.cycles);
}

nlohmann::json capture_json(const bench::capture_row& row) {
  return {{"nodes", row.nodes},
          {"us_per_node",
           {{"warm_up", as_json(row.warm_up)},
            {"capture", as_json(row.in_capture)},
            {"instantiation", as_json(row.instantiation)},
            {"first_replay", as_json(row.first_replay)},
            {"total", as_json(row.total)},
            {"floor", as_json(row.floor)}}}};
}

nlohmann::json held_json(const held_bytes& held, bool device_is_apart) {
  return {{"process", held.process},
          {"device", device_is_apart ? nlohmann::json(held.device) : nlohmann::json{}},
          {"own", held.own},
          {"budget", held.budget}};
}

nlohmann::json cycles_json(const bench::cycle_report& cycles) {
  return {{"cycles", cycles.cycles},
          {"warm_up_cycles", cycles.warm},
          {"captured", cycles.captured},
          {"evicted", cycles.evicted},
          {"bytes_after_warm_up", held_json(cycles.after_warm_up, cycles.device_is_apart)},
          {"bytes_at_end", held_json(cycles.at_end, cycles.device_is_apart)},
          {"growth_bytes",
           {{"process", cycles.process_growth()},
            {"device", cycles.device_growth()},
            {"own", cycles.own_growth()}}},
          {"limit_bytes", bench::growth_limit},
          {"within", cycles.failure().empty()}};
}

nlohmann::json report_json(const cache_bench_report& report, device_ref device,
                           const command_line& typed) {
  nlohmann::json value = bench_json("cache", device, command_text(typed, device));
  value["repeats"] = typed.options.repeats;
  value["other_recordings"] = typed.options.recordings;
  value["facts"] = bench::cache_facts;
  value["key_parts"] = bench::cache_key_parts + 2;
  value["host_time"] = "of the call alone, with nothing queued before it";
  value["no_bare_because"] = report.bare ? nlohmann::json{} : nlohmann::json(no_bare_launch);
  value["figures"] = nlohmann::json::array();
  for (const call_figure& f : figures_of(report)) value["figures"].push_back(as_json(f));
  value["captures"] = nlohmann::json::array();
  for (const auto& row : report.captures.rows) value["captures"].push_back(capture_json(row));
  value["cycles"] = cycles_json(report.cycles);
  value["calls"] = nlohmann::json::array();
  for (const bench::way_counts& one : report.keys.counts) {
    value["calls"].push_back({{"what", one.what},
                              {"calls", one.calls},
                              {"as_planned", one.replays ? one.replayed : one.eager},
                              {"bitwise_equal", one.equal}});
  }
  return value;
}

void run(const command_line& typed, int& exit_code) {
  check_json_target(typed.output);
  const device opened = open_device(typed.device);
  std::FILE* const people = typed.output.people();
  progress_line line{people, typed.output.quiet};
  const cache_bench_report report = bench::run_cache_bench(opened, typed.options, line.listener());
  line.clear();
  if (!typed.output.quiet) print_report(people, report, opened, typed);
  if (typed.output.json) write_json(typed.output, report_json(report, opened, typed));
  exit_code = exit_code_of(report.failure());
}

}  // namespace

void add_bench_cache(verb_ref bench, int& exit_code) {
  const verb_ref verb = bench.add_subcommand(
      "cache", "hits, misses, captures and evictions, beside what has to be done anyway");
  verb.footer("Example: reprise bench cache --device auto --cycles 100000 --json");
  const auto typed = std::make_shared<command_line>();
  command_line& t = *typed;
  verb.add_option("--nodes", t.options.nodes,
                  "kernels in the graph; hits and misses are of the first [10,100,1000]")
      .delimiter(',')
      .option_text("N,N,…");
  verb.add_option("--recordings", t.options.recordings, "that the cache holds besides [200]")
      .option_text("N");
  verb.add_option("--repeats", t.options.repeats, "rounds of hits and misses [500]")
      .option_text("N");
  verb.add_option("--captures", t.options.captures, "of each number of nodes [20]")
      .option_text("N");
  verb.add_option("--cycles", t.options.cycles, "of capture and eviction [3000]").option_text("N");
  verb.add_option("--device", t.device, "auto, cpu, cuda:N or sim:seed=N [auto]")
      .option_text("NAME");
  add_output_options(verb, t.output);
  verb.callback([typed, &exit_code] { run(*typed, exit_code); });
}

}  // namespace reprise::app
