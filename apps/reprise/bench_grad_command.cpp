#include "apps/reprise/bench_grad_command.hpp"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "apps/reprise/bench_output.hpp"
#include "apps/reprise/output.hpp"
#include "apps/reprise/progress_line.hpp"
#include "bench/grad/grad_bench.hpp"
#include "reprise/platform/platform.hpp"

namespace reprise::app {

namespace {

using bench::grad_bench_report;
using bench::grad_figure;
using bench::held_bytes;

// As they were typed.
struct command_line {
  std::string device = "auto";
  bench::grad_bench_options options;
  output_options output;
};

std::string command_text(const command_line& typed, device_ref device) {
  const bench::grad_bench_options& o = typed.options;
  return fmt::format("reprise bench grad --device {} --rounds {} --frames {} --ops {} --steps {}",
                     device.name(), o.rounds, fmt::join(o.frames, ","), o.ops, o.steps);
}

void print_figures(std::FILE* to, const grad_bench_report& report) {
  constexpr const char* line = "  {:<40}{:>10}  {:<20}{:<18}{:>10}{:>10}{:>9}{:>8}{:>9}  {}\n";
  fmt::print(to, line, "host time, us", "median", "p10 .. p90", "floor", "median", "adds",
             "launches", "copies", "kernels", "");
  for (const grad_figure* f : report.figures()) {
    const bench::call_figure& t = f->time;
    fmt::print(to, line, t.what, shown_us(median(t.us)), shown_range(t.us), t.floor,
               shown_us(median(t.floor_us)), shown_us(t.adds_us()),
               fmt::format("{:g}", f->per_call(seam_call::launch)),
               fmt::format("{:g}", f->per_call(seam_call::copy)),
               fmt::format("{:g}", f->per_call(seam_call::kernel)), verdict_of(t));
  }
  fmt::print(
      to, "  forward replays at {} and at {} frames: {}\n", report.pools.rows.front().frames,
      report.pools.rows.back().frames,
      report.pools.is_same_within_spread() ? "the same within their spread" : "NOT THE SAME");
}

void print_nets(std::FILE* to, const grad_bench_report& report) {
  constexpr const char* line = "  {:<34}{:>10}{:>12}{:>12}  {:<18}{:>10}{:>9}{:>8}{:>9}\n";
  fmt::print(to, "\n  a training step of {} layers, us\n", bench::net_layers);
  fmt::print(to, line, "", "host", "with device", "a forward", "floor", "median", "launches",
             "copies", "kernels");
  for (const bench::net_row& row : report.nets.rows) {
    const bench::call_figure& t = row.host.time;
    fmt::print(to, line, t.what, shown_us(median(t.us)), shown_us(median(row.step_us)),
               shown_us(row.step_us.median / row.forwards), t.floor, shown_us(median(t.floor_us)),
               fmt::format("{:g}", row.host.per_call(seam_call::launch)),
               fmt::format("{:g}", row.host.per_call(seam_call::copy)),
               fmt::format("{:g}", row.host.per_call(seam_call::kernel)));
  }
}

void print_lives(std::FILE* to, const bench::op_lives_report& lives) {
  constexpr const char* line = "  {:<30}{:>16}{:>16}{:>12}\n";
  fmt::print(to,
             "\n  {} ops made, run and destroyed: {} listed, {} frames, {} pools, {} bytes charged "
             "are left\n",
             lives.ops, lives.at_end.listed_ops, lives.at_end.frames, lives.at_end.pools,
             lives.at_end.budget_bytes);
  fmt::print(to, line, "bytes", "before", "after", "growth");
  const auto row = [&](const char* what, std::size_t held_bytes::*of, std::size_t growth) {
    fmt::print(to, line, what, lives.before.*of, lives.after.*of, growth);
  };
  row("of the process, resident", &held_bytes::process, lives.process_growth());
  if (lives.device_is_apart)
    row("of the device, in use", &held_bytes::device, lives.device_growth());
  row("held by Reprise", &held_bytes::own, lives.own_growth());
}

void print_report(std::FILE* to, const grad_bench_report& report, device_ref device,
                  const command_line& typed) {
  fmt::print(to, "{}, {}: {} rounds; inputs of {} KiB, a weight of {} MiB\n\n", device.name(),
             device.traits().model, typed.options.rounds, bench::call_in * 4 >> 10,
             bench::call_in * bench::call_out * 4 >> 20);
  print_figures(to, report);
  if (!report.bare) fmt::print(to, "  {}\n", no_bare_launch);
  print_nets(to, report);
  print_lives(to, report.lives);
}

// Calls of the seam, by kind; those that were never made are left out.
nlohmann::json seam_json(const grad_figure& f) {
  nlohmann::json kinds = nlohmann::json::object();
  for (std::size_t i = 0; i < seam_calls; ++i) {
    const auto kind = static_cast<seam_call>(i);
    if (f.made[i] != 0) kinds[std::string{name_of(kind)}] = f.per_call(kind);
  }
  return kinds;
}

nlohmann::json figure_json(const grad_figure& f) {
  nlohmann::json value = as_json(f.time);
  value["seam_calls_per_call"] = seam_json(f);
  value["planned_per_call"] = {
      {"launch", f.planned.launches}, {"copy", f.planned.copies}, {"kernel", f.planned.kernels}};
  return value;
}

nlohmann::json counts_json(const grad_counts& counts) {
  nlohmann::json eager_forward = nlohmann::json::object();
  nlohmann::json eager_backward = nlohmann::json::object();
  for (std::size_t i = 0; i < eager_causes; ++i) {
    const std::string cause{name_of(static_cast<eager_cause>(i))};
    if (counts.eager_forward[i] != 0) eager_forward[cause] = counts.eager_forward[i];
    if (counts.eager_backward[i] != 0) eager_backward[cause] = counts.eager_backward[i];
  }
  return {{"forward_capture", counts.forward_capture},
          {"forward_shared", counts.forward_shared},
          {"forward_replay", counts.forward_replay},
          {"backward_capture", counts.backward_capture},
          {"backward_replay", counts.backward_replay},
          {"stale_replay", counts.stale_replay},
          {"stale_by_pool", counts.stale_by_pool},
          {"inference", counts.inference},
          {"eager_forward", eager_forward},
          {"eager_backward", eager_backward}};
}

nlohmann::json net_json(const bench::net_row& row) {
  nlohmann::json value = figure_json(row.host);
  value["forwards_per_step"] = row.forwards;
  value["with_device_us"] = as_json(row.step_us);
  return value;
}

nlohmann::json lengths_json(const bench::list_lengths& lengths) {
  return {{"listed_ops", lengths.listed_ops},
          {"frames", lengths.frames},
          {"pools", lengths.pools},
          {"budget_bytes", lengths.budget_bytes}};
}

nlohmann::json held_json(const held_bytes& held, bool device_is_apart) {
  return {{"process", held.process},
          {"device", device_is_apart ? nlohmann::json(held.device) : nlohmann::json{}},
          {"own", held.own}};
}

nlohmann::json lives_json(const bench::op_lives_report& lives) {
  return {{"ops", lives.ops},
          {"captured_forwards", lives.captured_forwards},
          {"captured_backwards", lives.captured_backwards},
          {"lengths_alive", lengths_json(lives.alive)},
          {"lengths_at_end", lengths_json(lives.at_end)},
          {"bytes_before", held_json(lives.before, lives.device_is_apart)},
          {"bytes_after", held_json(lives.after, lives.device_is_apart)},
          {"growth_bytes",
           {{"process", lives.process_growth()},
            {"device", lives.device_growth()},
            {"own", lives.own_growth()}}},
          {"limit_bytes", bench::growth_limit},
          {"within", lives.failure().empty()}};
}

nlohmann::json report_json(const grad_bench_report& report, device_ref device,
                           const command_line& typed) {
  nlohmann::json value = bench_json("grad", device, command_text(typed, device));
  value["rounds"] = typed.options.rounds;
  value["input_bytes"] = bench::call_in * 4;
  value["parameter_bytes"] = bench::call_in * bench::call_out * 4;
  value["host_time"] = "of the call alone, with nothing queued before it; its calls are counted";
  value["no_bare_because"] = report.bare ? nlohmann::json{} : nlohmann::json(no_bare_launch);
  value["figures"] = nlohmann::json::array();
  for (const grad_figure* one : report.figures()) value["figures"].push_back(figure_json(*one));
  value["forward_same_within_spread_at_all_frames"] = report.pools.is_same_within_spread();
  value["training_steps"] = nlohmann::json::array();
  for (const auto& row : report.nets.rows) value["training_steps"].push_back(net_json(row));
  value["op_lives"] = lives_json(report.lives);
  value["ops"] = nlohmann::json::array();
  for (const bench::op_counts* one : report.ops()) {
    value["ops"].push_back({{"what", one->what},
                            {"calls", counts_json(one->seen)},
                            {"planned", counts_json(one->planned)},
                            {"stale_replay_us", one->seen.stale_us},
                            {"bitwise_equal", one->equal}});
  }
  return value;
}

void run(const command_line& typed, int& exit_code) {
  check_json_target(typed.output);
  const auto counts = std::make_shared<call_counts>();
  const device opened = open_device(typed.device, {.counts = counts});
  std::FILE* const people = typed.output.people();
  progress_line line{people, typed.output.quiet};
  const grad_bench_report report =
      bench::run_grad_bench(opened, *counts, typed.options, line.listener());
  line.clear();
  if (!typed.output.quiet) print_report(people, report, opened, typed);
  if (typed.output.json) write_json(typed.output, report_json(report, opened, typed));
  exit_code = exit_code_of(report.failure());
}

}  // namespace

void add_bench_grad(verb_ref bench, int& exit_code) {
  const verb_ref verb = bench.add_subcommand(
      "grad", "forwards and backwards that are replayed, beside the bare launch");
  verb.footer("Example: reprise bench grad --device auto --rounds 1000 --json");
  const auto typed = std::make_shared<command_line>();
  command_line& t = *typed;
  verb.add_option("--rounds", t.options.rounds, "of calls [500]").option_text("N");
  verb.add_option("--frames", t.options.frames, "in one pool, for each pool [10,1000]")
      .delimiter(',')
      .option_text("N,N,…");
  verb.add_option("--ops", t.options.ops, "that are made, run and destroyed [1000]")
      .option_text("N");
  verb.add_option("--steps", t.options.steps, "of training [100]").option_text("N");
  verb.add_option("--device", t.device, "auto, cpu, cuda:N or sim:seed=N [auto]")
      .option_text("NAME");
  add_output_options(verb, t.output);
  verb.callback([typed, &exit_code] { run(*typed, exit_code); });
}

}  // namespace reprise::app
