#include "apps/reprise/bench_train_command.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "apps/reprise/bench_output.hpp"
#include "apps/reprise/default_model.hpp"
#include "apps/reprise/output.hpp"
#include "apps/reprise/progress_line.hpp"
#include "bench/measure/program.hpp"
#include "bench/train/train_bench.hpp"
#include "reprise/platform/platform.hpp"

namespace reprise::app {

namespace {

using bench::train_bench_report;
using bench::train_row;
using bench::train_size;

constexpr const char* peer_file = "bench/peers/pytorch_train.py";

// As they were typed.
struct command_line {
  std::string device = "auto";
  bool no_peer = false;
  bench::train_bench_options options;
  output_options output;
};

// What PyTorch does with the same network: its JSON, or why there is none.
struct peer {
  nlohmann::json measured;
  std::string why_not;
};

std::string command_text(const command_line& typed, device_ref device) {
  const bench::train_bench_options& o = typed.options;
  return fmt::format("reprise bench train --device {} --batch {} --layers {} --width {} --steps {}",
                     device.name(), fmt::join(o.batches, ","), o.layers, o.width, o.steps);
}

peer ask(const command_line& typed) {
  if (typed.no_peer) return {nullptr, "--no-peer was given"};
  const bench::train_bench_options& o = typed.options;
  if (o.layers != 24 || o.width != 256) return {nullptr, "it has 24 layers of 256 only"};
  const std::filesystem::path file = default_text(peer_file, "give --no-peer");
  const bench::program_output said = bench::run_program(
      {"python3", file.string(), "--batch", fmt::format("{}", fmt::join(o.batches, ",")), "--steps",
       std::to_string(o.steps)},
      bench::program_errors::beside);
  if (said.status != 0) return {nullptr, said.last_line()};
  nlohmann::json measured = nlohmann::json::parse(said.last_line(), nullptr, false);
  if (measured.is_discarded()) return {nullptr, "it printed no JSON"};
  return {std::move(measured), {}};
}

std::string verdict(const train_row& row, const train_size& size) {
  if (!row.limit_us) return "";
  const char* const over = row.limit_is_over_the_whole ? " over the whole step" : "";
  return fmt::format("at most {:.0f}{}: {}", *row.limit_us, over,
                     *row.within(size.whole_us()) ? "kept" : "NOT KEPT");
}

void print_size(std::FILE* to, const train_size& size) {
  constexpr const char* line = "  {:<26}{:>11}  {:<20}{:>11}{:>9}{:>9}  {}\n";
  fmt::print(to, "\n  batch {}: a step of {} nodes, {:.1f} MB of weights, {:.0f} MB to move, us\n",
             size.shape.batch, size.nodes, static_cast<double>(size.weight_bytes) * 1e-6,
             static_cast<double>(size.moved_bytes) * 1e-6);
  fmt::print(to, line, "", "step", "p10 .. p90", "host", "launches", "kernels", "");
  for (const train_row& row : size.rows) {
    fmt::print(to, line, row.way, shown_us(median(row.step_us)), shown_range(row.step_us),
               shown_us(median(row.host.time.us)),
               fmt::format("{:g}", row.host.per_call(seam_call::launch)),
               fmt::format("{:g}", row.host.per_call(seam_call::kernel)), verdict(row, size));
  }
  fmt::print(to, line, fmt::format("a bare launch of {} nodes", size.nodes),
             shown_us(median(size.bare_us)), shown_range(size.bare_us), "", "", "", "");
}

void print_peer(std::FILE* to, const peer& beside) {
  if (!beside.why_not.empty()) {
    fmt::print(to, "\n  no PyTorch beside it: {}\n", beside.why_not);
    return;
  }
  fmt::print(to, "\n  {} on {}, us\n", beside.measured.value("peer", "?"),
             beside.measured.value("device", "?"));
  for (const auto& row : beside.measured["steps"]) {
    fmt::print(to, "  batch {:<6}{:<24}{:>11.2f}\n", row["batch"].get<int>(),
               row["way"].get<std::string>(), row["step_us"]["median"].get<double>());
  }
  fmt::print(to, "  three micro-batches accumulated: {}\n",
             beside.measured.value("accumulated_gradients_are_eager", false)
                 ? "the eager gradients"
                 : "NOT the eager gradients");
}

void print_report(std::FILE* to, const train_bench_report& report, device_ref device,
                  const command_line& typed, const peer& beside) {
  const bench::train_bench_options& o = typed.options;
  fmt::print(to, "{}, {}: {} layers of {} (product, layer norm, GELU), {} steps\n", device.name(),
             device.traits().model, o.layers, o.width, o.steps);
  for (const train_size& size : report.sizes) print_size(to, size);
  if (!report.bare) fmt::print(to, "  {}\n", no_bare_launch);
  print_peer(to, beside);
}

nlohmann::json row_json(const train_row& row, const train_size& size) {
  nlohmann::json value = as_json(row.host.time);
  value["way"] = row.way;
  value["step_us"] = as_json(row.step_us);
  value["step_limit_us"] = or_null(row.limit_us);
  value["limit_is_over_the_whole_step"] = row.limit_is_over_the_whole;
  value["within"] = or_null(row.within(size.whole_us()));
  value["launches"] = row.host.per_call(seam_call::launch);
  value["kernels"] = row.host.per_call(seam_call::kernel);
  value["copies"] = row.host.per_call(seam_call::copy);
  value["bitwise_equal"] = row.equal;
  return value;
}

nlohmann::json report_json(const train_bench_report& report, device_ref device,
                           const command_line& typed, const peer& beside) {
  nlohmann::json value = bench_json("train", device, command_text(typed, device));
  value["layers"] = typed.options.layers;
  value["width"] = typed.options.width;
  value["no_bare_because"] = report.bare ? nlohmann::json{} : nlohmann::json(no_bare_launch);
  value["sizes"] = nlohmann::json::array();
  for (const train_size& size : report.sizes) {
    nlohmann::json rows = nlohmann::json::array();
    for (const train_row& row : size.rows) rows.push_back(row_json(row, size));
    value["sizes"].push_back({{"batch", size.shape.batch},
                              {"weight_bytes", size.weight_bytes},
                              {"moved_bytes", size.moved_bytes},
                              {"nodes", size.nodes},
                              {"bare_step_us", as_json(size.bare_us)},
                              {"ways", rows}});
  }
  value["peer"] = beside.measured;
  value["no_peer_because"] =
      beside.why_not.empty() ? nlohmann::json{} : nlohmann::json(beside.why_not);
  return value;
}

void run(const command_line& typed, int& exit_code) {
  check_json_target(typed.output);
  const auto counts = std::make_shared<call_counts>();
  const device opened = open_device(typed.device, {.counts = counts});
  std::FILE* const people = typed.output.people();
  progress_line line{people, typed.output.quiet};
  const train_bench_report report =
      bench::run_train_bench(opened, *counts, typed.options, line.listener());
  line.show("asking PyTorch", 0, 1, {});
  const peer beside = ask(typed);
  line.clear();
  if (!typed.output.quiet) print_report(people, report, opened, typed, beside);
  if (typed.output.json) write_json(typed.output, report_json(report, opened, typed, beside));
  exit_code = exit_code_of(report.failure());
}

}  // namespace

void add_bench_train(verb_ref bench, int& exit_code) {
  const verb_ref verb = bench.add_subcommand(
      "train", "a training step: eager, by recordings of its parts, and as one recording");
  verb.footer("Example: reprise bench train --device auto --batch 32 --steps 200 --json");
  const auto typed = std::make_shared<command_line>();
  command_line& t = *typed;
  verb.add_option("--batch", t.options.batches, "rows of a step, for each size [32,512]")
      .delimiter(',')
      .option_text("N,N,…");
  verb.add_option("--layers", t.options.layers, "of the network [24]").option_text("N");
  verb.add_option("--width", t.options.width, "of each [256]").option_text("N");
  verb.add_option("--steps", t.options.steps, "that are measured [50]").option_text("N");
  verb.add_flag("--no-peer", t.no_peer, "do not ask PyTorch, where it is installed");
  verb.add_option("--device", t.device, "auto, cpu, cuda:N or sim:seed=N [auto]")
      .option_text("NAME");
  add_output_options(verb, t.output);
  verb.callback([typed, &exit_code] { run(*typed, exit_code); });
}

}  // namespace reprise::app
