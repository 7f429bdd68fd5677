#include "apps/reprise/bench_decode_command.hpp"

#include <fmt/format.h>

#include <memory>
#include <string>

#include "apps/reprise/bench_output.hpp"
#include "apps/reprise/default_model.hpp"
#include "apps/reprise/output.hpp"
#include "apps/reprise/progress_line.hpp"
#include "bench/decode/decode_bench.hpp"
#include "reprise/platform/platform.hpp"

namespace reprise::app {

namespace {

using bench::decode_bench_report;
using bench::decode_row;

// As they were typed.
struct command_line {
  std::string device = "auto";
  int threads = 0;
  std::string config;
  bench::decode_bench_options options;
  output_options output;
};

std::string model_text(const command_line& typed) {
  return typed.config.empty() ? typed.options.model.string() : typed.config + " (drawn)";
}

std::string command_text(const command_line& typed, device_ref device) {
  std::string text = fmt::format("reprise bench decode --device {}", device.name());
  if (!typed.config.empty()) text += " --config " + typed.config;
  text += fmt::format(" --batch-sizes {} --tokens {} --context {}",
                      fmt::join(typed.options.batch_sizes, ","), typed.options.tokens,
                      typed.options.context);
  if (typed.options.watch) text += fmt::format(" --watch '{}'", *typed.options.watch);
  return text;
}

std::string gigabytes(std::size_t bytes) {
  return fmt::format("{:.3f}", static_cast<double>(bytes) * 1e-9);
}

void print_report(std::FILE* to, const decode_bench_report& report, device_ref device,
                  const command_line& typed) {
  fmt::print(to, "{}, {}, {}, weights {}\n", device.name(), device.traits().model,
             model_text(typed), name_of(report.weights));
  fmt::print(to, "  {} steps measured for each figure, after prompts of {} tokens\n",
             typed.options.tokens, typed.options.context);
  fmt::print(to, "  floor: the bytes a step reads, at {:.0f} GB/s (copies within the device)\n\n",
             report.copies.bytes_per_us * 1e-3);
  constexpr const char* line = "  {:>6}{:>12}{:>12}{:>12}{:>10}{:>12}{:>10}\n";
  fmt::print(to, line, "batch", "eager us", "replay us", "floor us", "of floor", "weights GB",
             "kv GB");
  for (const decode_row& row : report.rows) {
    fmt::print(to, line, row.batch, shown_us(row.eager.step_us.median),
               shown_us(row.replayed.step_us.median), shown_us(row.floor_us),
               fmt::format("{:.2f}", row.replayed.step_us.median / row.floor_us),
               gigabytes(row.weight_bytes), gigabytes(row.kv_bytes));
  }
  for (const decode_row& row : report.rows) {
    if (!row.watched) continue;
    const bench::watched_decode& seen = *row.watched;
    fmt::print(to,
               "  batch {}, {} points on in every other step: {} us on, {} off; on adds {:.1f} us "
               "({:.1f} to {:.1f})\n",
               row.batch, seen.points, shown_us(seen.on_us.median), shown_us(seen.off_us.median),
               seen.adds_us.median, seen.adds_us.low, seen.adds_us.high);
  }
}

nlohmann::json watched_json(const decode_row& row) {
  if (!row.watched) return nullptr;
  const bench::watched_decode& seen = *row.watched;
  return {{"points", seen.points},
          {"on_us", as_json(seen.on_us)},
          {"off_us", as_json(seen.off_us)},
          {"adds_us", seen.adds_us.median},
          {"adds_us_interval", {seen.adds_us.low, seen.adds_us.high}},
          {"records", seen.records},
          {"steps", as_json(seen.steps.counts)},
          {"planned", as_json(seen.steps.planned)},
          {"tokens_equal", seen.equal}};
}

nlohmann::json row_json(const decode_row& row) {
  return {
      {"batch", row.batch},
      {"eager_us", as_json(row.eager.step_us)},
      {"replayed_us", as_json(row.replayed.step_us)},
      {"measured_us", row.replayed.step_us.median},
      {"floor_us", row.floor_us},
      {"weight_bytes", row.weight_bytes},
      {"kv_bytes", row.kv_bytes},
      {"steps", {{"eager", as_json(row.eager.counts)}, {"replayed", as_json(row.replayed.counts)}}},
      {"planned",
       {{"eager", as_json(row.eager.planned)}, {"replayed", as_json(row.replayed.planned)}}},
      {"tokens_equal", row.equal},
      {"watched", watched_json(row)}};
}

nlohmann::json report_json(const decode_bench_report& report, device_ref device,
                           const command_line& typed) {
  nlohmann::json value = bench_json("decode", device, command_text(typed, device));
  value["sizes"] = model_text(typed);
  value["weights"] = name_of(report.weights);
  value["tokens"] = typed.options.tokens;
  value["context"] = typed.options.context;
  value["step_time"] =
      "host time of one decode step, from before its inputs are staged until its tokens are back";
  value["copies"] = {{"bytes", report.copies.bytes},
                     {"bytes_per_us", report.copies.bytes_per_us},
                     {"counted", "read plus written"}};
  value["rows"] = nlohmann::json::array();
  for (const decode_row& row : report.rows) value["rows"].push_back(row_json(row));
  return value;
}

void run(command_line& typed, int& exit_code) {
  check_json_target(typed.output);
  const std::filesystem::path config[] = {typed.config};
  if (!typed.config.empty()) check_json_spares(typed.output, config, "the file of --config");
  if (typed.config.empty()) {
    typed.options.model = default_model("tiny-llama", "give --config FILE");
  } else {
    typed.options.config = typed.config;
  }
  const device opened = open_device(typed.device, {.threads = typed.threads, .counts = nullptr});
  std::FILE* const people = typed.output.people();
  progress_line line{people, typed.output.quiet};
  const decode_bench_report report =
      bench::run_decode_bench(opened, typed.options, line.listener());
  line.clear();
  if (!typed.output.quiet) print_report(people, report, opened, typed);
  if (typed.output.json) write_json(typed.output, report_json(report, opened, typed));
  exit_code = exit_code_of(report.failure());
}

}  // namespace

void add_bench_decode(verb_ref bench, int& exit_code) {
  const verb_ref verb = bench.add_subcommand(
      "decode", "decode steps, eager and replayed, against the bytes that a step reads");
  verb.footer(
      "Without --config it measures models/tiny-llama, which runs anywhere. configs/llama-8b.json\n"
      "draws 16.4 GB of bf16 weights on the device, and each request takes 0.3 MB of fp32 keys\n"
      "and values a token: 32 requests of 1024 tokens take 10 GB more.\n"
      "Example: reprise bench decode --config configs/llama-8b.json --batch-sizes 1,32 --json");
  const auto typed = std::make_shared<command_line>();
  command_line& t = *typed;
  verb.add_option("--config", t.config, "sizes of a model; its weights are drawn [tiny-llama]")
      .option_text("FILE");
  verb.add_option("--batch-sizes", t.options.batch_sizes, "requests at once [1,32]")
      .delimiter(',')
      .option_text("N,N,…");
  verb.add_option("--tokens", t.options.tokens, "steps that are measured, for each figure [64]")
      .option_text("N")
      .range(1, std::int64_t{1} << 24);
  verb.add_option("--context", t.options.context, "tokens of each prompt [128]")
      .option_text("N")
      .range(1, std::int64_t{1} << 24);
  verb.add_option("--watch", t.options.watch,
                  "also with these points on in every other step, such as resid_pre:*")
      .option_text("SPEC");
  verb.add_option("--device", t.device, "auto, cpu, cuda:N or sim:seed=N [auto]")
      .option_text("NAME");
  verb.add_option("--threads", t.threads, "of the cpu [all]").option_text("N").range(1, 1024);
  add_output_options(verb, t.output);
  verb.callback([typed, &exit_code] { run(*typed, exit_code); });
}

}  // namespace reprise::app
