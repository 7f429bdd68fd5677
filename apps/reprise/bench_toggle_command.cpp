#include "apps/reprise/bench_toggle_command.hpp"

#include <fmt/format.h>

#include <memory>
#include <string>

#include "apps/reprise/bench_output.hpp"
#include "apps/reprise/output.hpp"
#include "apps/reprise/progress_line.hpp"
#include "bench/tap/layer.hpp"
#include "bench/toggle/toggle_bench.hpp"
#include "reprise/platform/platform.hpp"

namespace reprise::app {

namespace {

using bench::in_flight_figure;
using bench::switched_counts;
using bench::toggle_bench_options;
using bench::toggle_bench_report;
using bench::toggle_figure;

// As they were typed.
struct command_line {
  std::string device = "auto";
  toggle_bench_options options;
  output_options output;
};

// With what the device chose.
std::string command_text(const toggle_bench_options& o, device_ref device) {
  return fmt::format(
      "reprise bench toggle --device {} --points {} --repeats {} --pairs {} --schedules {}",
      device.name(), fmt::join(o.points, ","), o.repeats, o.pairs, o.schedules);
}

constexpr const char* line = "  {:>6}  {:<56}{:>10}  {:<20}{:>10}{:>9}  {:<24}{}\n";

void print_figure(std::FILE* to, const toggle_figure& f) {
  const std::string interval =
      f.adds ? fmt::format("{:.2f} .. {:.2f}", f.adds->low, f.adds->high) : "-";
  fmt::print(to, line, f.points, f.of.what, shown_us(median(f.of.us)), shown_range(f.of.us),
             shown_us(median(f.of.floor_us)), shown_us(f.of.adds_us()), interval, verdict_of(f.of));
}

void print_in_flight(std::FILE* to, const in_flight_figure& f) {
  const std::optional<bool> within = f.within();
  fmt::print(to, "  {:>6}  {}: the call takes {} us, and all is done {} us after its begin{}\n",
             f.points, f.what, shown_us(median(f.call_us)), shown_us(median(f.flight_us)),
             !within   ? ""
             : *within ? "; at most half of that: kept"
                       : "; at most half of that: NOT KEPT");
}

void print_left_out(std::FILE* to, std::uint64_t pairs, std::size_t points,
                    const std::string& what) {
  if (pairs == 0) return;
  fmt::print(to,
             "  {} points, {}: pairs left out, since an executable that switching had slowed was "
             "instantiated anew in them: {}\n",
             points, what, pairs);
}

void print_report(std::FILE* to, const toggle_bench_report& report, device_ref device) {
  const toggle_bench_options& o = report.options;
  fmt::print(to, "{}, {}: {} changes, {} pairs, {} random sets; device time {}\n\n", device.name(),
             device.traits().model, o.repeats, o.pairs, o.schedules,
             report.timed_by_events ? "between two CUDA events"
                                    : "of the host, until the stream was synchronised");
  fmt::print(to, line, "points", "us", "median", "p10 .. p90", "floor", "adds", "between (95 %)",
             "");
  for (const toggle_figure& f : report.all.figures) print_figure(to, f);
  for (const in_flight_figure& f : report.all.in_flight) print_in_flight(to, f);
  for (const toggle_figure& f : report.all.figures) {
    fmt::print(to, "  {} points, {} against: {}\n", f.points, f.of.what, f.of.floor);
  }
  for (const toggle_figure& f : report.all.figures) {
    print_left_out(to, f.left_out, f.points, f.of.what);
  }
  for (const in_flight_figure& f : report.all.in_flight) {
    print_left_out(to, f.left_out, f.points, f.what);
  }
}

nlohmann::json figure_json(const toggle_figure& f) {
  nlohmann::json value = as_json(f.of);
  value["points"] = f.points;
  value["changed_nodes"] = f.changed_nodes;
  value["left_out"] = f.left_out;
  value["adds_interval_us"] = nullptr;
  if (f.adds) {
    value["adds_interval_us"] = {{"median", f.adds->median},
                                 {"low", f.adds->low},
                                 {"high", f.adds->high},
                                 {"count", f.adds->count}};
  }
  return value;
}

nlohmann::json in_flight_json(const in_flight_figure& f) {
  return {{"what", f.what},
          {"points", f.points},
          {"replays", f.replays},
          {"left_out", f.left_out},
          {"call_us", as_json(f.call_us)},
          {"flight_us", as_json(f.flight_us)},
          {"within", or_null(f.within())}};
}

nlohmann::json counts_json(const switched_counts& c) {
  return {{"what", c.what},
          {"mode", name_of(c.mode)},
          {"points", c.points},
          {"calls", c.calls},
          {"eager", c.eager},
          {"measured", c.measured},
          {"replayed", c.replayed},
          {"bitwise_equal", c.equal && c.wrong == 0},
          {"records", {{"expected", c.expected}, {"seen", c.seen}, {"compared", c.compared}}},
          {"driver_calls", {{"timed", c.driver_calls}, {"planned", c.driver_calls_planned}}},
          {"switches", c.switched.switches},
          {"enable_calls", c.switched.enable_calls},
          {"copies", c.switched.copies},
          {"variants_made", c.switched.variants_made},
          {"repairs", c.switched.repairs},
          {"repaired_while_timed", c.repaired}};
}

nlohmann::json report_json(const toggle_bench_report& report, device_ref device) {
  nlohmann::json value = bench_json("toggle", device, command_text(report.options, device));
  value["device_time"] = report.timed_by_events ? "between two CUDA events"
                                                : "of the host, until the stream was synchronised";
  for (const char* list : {"figures", "in_flight", "calls"}) value[list] = nlohmann::json::array();
  for (const toggle_figure& f : report.all.figures) value["figures"].push_back(figure_json(f));
  for (const in_flight_figure& f : report.all.in_flight) {
    value["in_flight"].push_back(in_flight_json(f));
  }
  for (const switched_counts& c : report.all.switched) value["calls"].push_back(counts_json(c));
  return value;
}

void run(const command_line& typed, int& exit_code) {
  check_json_target(typed.output);
  kernel_registry kernels = builtin_kernels();
  bench::add_tap_kernels(kernels);
  const device opened = open_device(typed.device, {}, kernels);
  std::FILE* const people = typed.output.people();
  progress_line line_of{people, typed.output.quiet};
  const toggle_bench_report report =
      bench::run_toggle_bench(opened, typed.options, line_of.listener());
  line_of.clear();
  if (!typed.output.quiet) print_report(people, report, opened);
  if (typed.output.json) write_json(typed.output, report_json(report, opened));
  exit_code = exit_code_of(report.failure());
}

}  // namespace

void add_bench_toggle(verb_ref bench, int& exit_code) {
  const verb_ref verb =
      bench.add_subcommand("toggle", "what it costs to switch taps from step to step");
  verb.footer("Example: reprise bench toggle --device auto --points 36,256 --json");
  const auto typed = std::make_shared<command_line>();
  toggle_bench_options& o = typed->options;
  verb.add_option("--points", o.points,
                  "of steps; idle at each, all else at the last [36,256 on a GPU, else 4,12]")
      .delimiter(',')
      .option_text("N,…");
  verb.add_option("--repeats", o.repeats, "of each changed set [200 on a GPU, else 4]")
      .range(1, 100'000)
      .option_text("N");
  verb.add_option("--pairs", o.pairs, "of idle, recurring and unchanged steps [1000; 10]")
      .range(1, 100'000)
      .option_text("N");
  verb.add_option("--schedules", o.schedules, "random sets before a replay is timed [1000; 20]")
      .range(1, 1'000'000)
      .option_text("N");
  verb.add_option("--device", typed->device, "auto, cpu, cuda:N or sim:seed=N [auto]")
      .option_text("NAME");
  add_output_options(verb, typed->output);
  verb.callback([typed, &exit_code] { run(*typed, exit_code); });
}

}  // namespace reprise::app
