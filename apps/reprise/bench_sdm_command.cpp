#include "apps/reprise/bench_sdm_command.hpp"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "apps/reprise/bench_output.hpp"
#include "apps/reprise/output.hpp"
#include "apps/reprise/progress_line.hpp"
#include "bench/sdm/sdm_bench.hpp"
#include "reprise/platform/platform.hpp"

namespace reprise::app {

namespace {

using bench::sdm_bench_report;
using bench::sdm_figure;

// As they were typed.
struct command_line {
  std::string device = "auto";
  bool no_growth = false;
  bench::sdm_bench_options options;
  output_options output;
};

std::string command_text(const command_line& typed, const sdm_bench_report& report,
                         device_ref device) {
  return fmt::format("reprise bench sdm --device {} --rounds {} --sizes {}{}", device.name(),
                     typed.options.rounds, fmt::join(report.measured, ","),
                     typed.no_growth ? " --no-growth" : "");
}

std::string sizes_text(const sdm_sizes& s) {
  return fmt::format("{} stream{} of {} token{}, {} slots of width {}, {} writes, {} reads, bf16",
                     s.streams, s.streams == 1 ? "" : "s", s.tokens, s.tokens == 1 ? "" : "s",
                     s.slots, s.width, s.writes, s.reads);
}

std::string verdict_text(std::optional<bool> within) {
  return !within ? "not judged" : (*within ? "kept" : "NOT KEPT");
}

std::string limit_text(const sdm_figure& f) {
  if (!f.limit_us) return "";
  return fmt::format("at most {:g}: {}", *f.limit_us, verdict_text(f.within()));
}

void print_figures(std::FILE* to, const std::vector<sdm_figure>& figures) {
  constexpr const char* line = "  {:<52}{:>12}  {:<24}{:>12}{:>12}{:>10}  {}\n";
  fmt::print(to, line, "us", "median", "p10 .. p90", "a token", "floor", "of floor", "");
  for (const sdm_figure& f : figures) {
    const std::optional<double> times = f.over_floor();
    fmt::print(to, line, f.what, shown_us(f.us), shown_range(f.measured),
               fmt::format("{:.4f}", f.us_per_token()), shown_us(f.floor_us()),
               times ? fmt::format("{:.2f}", *times) : "-", limit_text(f));
  }
}

void print_held(std::FILE* to, const bench::size_costs& size, bool device_is_apart) {
  constexpr const char* line = "  {:<52}{:>14}{:>18}{:>18}\n";
  fmt::print(to, line, "MiB that it took", "of the op", "held by Reprise", "of the device");
  const auto shown = [](std::size_t bytes) {
    return fmt::format("{:.1f}", static_cast<double>(bytes) / (1 << 20));
  };
  for (const bench::sdm_held& one : size.held) {
    fmt::print(to, line, one.what, shown(one.op_bytes), shown(one.own_bytes),
               device_is_apart ? shown(one.device_bytes) : "-");
  }
}

void print_growth(std::FILE* to, const bench::growth_costs& growth) {
  constexpr const char* line = "  {:>10}{:>14}{:>18}{:>14}{:>12}\n";
  fmt::print(to,
             "\ngrowth: {} tokens of width {}, {} writes, {} reads, chunk {}; at most {:g} %: {}\n",
             growth.shape.tokens, growth.shape.width, growth.shape.writes, growth.shape.reads,
             growth.shape.chunk, bench::growth_limit_percent, verdict_text(growth.within()));
  fmt::print(to, line, "slots", "op us", "whole banks us", "a token us", "growth %");
  for (const bench::growth_row& row : growth.rows) {
    fmt::print(to, line, row.slots, shown_us(row.op.median), shown_us(row.passes_us),
               fmt::format("{:.4f}", row.us_per_token()),
               fmt::format("{:+.1f}", growth.percent(row)));
  }
}

void print_report(std::FILE* to, const sdm_bench_report& report, device_ref device,
                  const command_line& typed) {
  fmt::print(to, "{}, {}: {} rounds; floors at {:.0f} GB/s (copies within the device)\n",
             device.name(), device.traits().model, typed.options.rounds,
             report.copies.bytes_per_us * 1e-3);
  if (typed.options.sizes.empty()) {
    fmt::print(to, "{}\n",
               report.device_is_apart ? "all sizes: small, large"
                                      : "the small size alone, since this is no GPU: --sizes "
                                        "small,large measures all of them");
  }
  for (const bench::size_costs& size : report.sizes) {
    fmt::print(to, "\n{}, chunk {}: {}\n", size.name, size.sizes.chunk, sizes_text(size.sizes));
    print_figures(to, size.figures);
    print_held(to, size, report.device_is_apart);
  }
  if (report.decode) {
    fmt::print(to, "\n{}, decode, a replay of {} in a row: {}\n", report.decode->name,
               bench::decode_replays_in_a_row, sizes_text(report.decode->sizes));
    print_figures(to, report.decode->figures);
  }
  if (report.growth) print_growth(to, *report.growth);
}

nlohmann::json sizes_json(const sdm_sizes& s) {
  return {{"streams", s.streams}, {"tokens", s.tokens}, {"width", s.width}, {"slots", s.slots},
          {"writes", s.writes},   {"reads", s.reads},   {"chunk", s.chunk}, {"storage", "bf16"}};
}

nlohmann::json figures_json(const std::vector<sdm_figure>& figures) {
  nlohmann::json all = nlohmann::json::array();
  for (const sdm_figure& f : figures) {
    all.push_back({{"what", f.what},
                   {"us", f.us},
                   {"measured_us", as_json(f.measured)},
                   {"us_per_token", f.us_per_token()},
                   {"floor_bytes", or_null(f.floor_bytes)},
                   {"floor_us", or_null(f.floor_us())},
                   {"over_floor", or_null(f.over_floor())},
                   {"limit", or_null(f.limit_us)},
                   {"within", or_null(f.within())}});
  }
  return all;
}

nlohmann::json held_json(const std::vector<bench::sdm_held>& held, bool device_is_apart) {
  nlohmann::json all = nlohmann::json::array();
  for (const bench::sdm_held& one : held) {
    all.push_back({{"what", one.what},
                   {"op", one.op_bytes},
                   {"own", one.own_bytes},
                   {"device", device_is_apart ? nlohmann::json(one.device_bytes) : nullptr}});
  }
  return all;
}

nlohmann::json growth_json(const bench::growth_costs& growth) {
  nlohmann::json rows = nlohmann::json::array();
  for (const bench::growth_row& row : growth.rows) {
    rows.push_back({{"slots", row.slots},
                    {"op_us", as_json(row.op)},
                    {"whole_bank_passes_us", row.passes_us},
                    {"us_per_token", row.us_per_token()},
                    {"growth_percent", growth.percent(row)}});
  }
  return {{"tokens", growth.shape.tokens},        {"width", growth.shape.width},
          {"writes", growth.shape.writes},        {"reads", growth.shape.reads},
          {"chunk", growth.shape.chunk},          {"rows", rows},
          {"limit", bench::growth_limit_percent}, {"within", or_null(growth.within())}};
}

nlohmann::json counts_json(const grad_counts& c) {
  return {{"forward",
           {{"captured", c.forward_capture},
            {"replayed", c.forward_replay},
            {"eager", c.eager_forwards()}}},
          {"backward",
           {{"captured", c.backward_capture},
            {"replayed", c.backward_replay},
            {"eager", c.eager_backwards()}}},
          {"stale_replays", c.stale_replay}};
}

nlohmann::json report_json(const sdm_bench_report& report, device_ref device,
                           const command_line& typed) {
  nlohmann::json value = bench_json("sdm", device, command_text(typed, report, device));
  value["rounds"] = typed.options.rounds;
  value["time"] = "of the host, from a call until the stream was synchronised";
  value["copies"] = {{"bytes", report.copies.bytes},
                     {"bytes_per_us", report.copies.bytes_per_us},
                     {"counted", "read plus written"}};
  value["sizes"] = nlohmann::json::array();
  for (const bench::size_costs& size : report.sizes) {
    nlohmann::json row = sizes_json(size.sizes);
    row["name"] = size.name;
    row["figures"] = figures_json(size.figures);
    row["held_bytes"] = held_json(size.held, report.device_is_apart);
    value["sizes"].push_back(row);
  }
  value["decode"] = nullptr;
  if (report.decode) {
    value["decode"] = sizes_json(report.decode->sizes);
    value["decode"]["name"] = report.decode->name;
    value["decode"]["replays_in_a_row"] = bench::decode_replays_in_a_row;
    value["decode"]["figures"] = figures_json(report.decode->figures);
  }
  value["growth"] = report.growth ? growth_json(*report.growth) : nlohmann::json{};
  value["ops"] = nlohmann::json::array();
  for (const bench::op_counts* const one : report.ops()) {
    value["ops"].push_back({{"what", one->what},
                            {"calls", counts_json(one->seen)},
                            {"planned", counts_json(one->planned)},
                            {"bitwise_equal", one->equal}});
  }
  value["steps"] = nlohmann::json::array();
  for (const bench::sdm_step_counts* const one : report.steps()) {
    value["steps"].push_back({{"what", one->what},
                              {"runs", one->runs},
                              {"calls", as_json(one->replays)},
                              {"bitwise_equal", one->equal}});
  }
  return value;
}

void run(command_line& typed, int& exit_code) {
  check_json_target(typed.output);
  typed.options.growth = !typed.no_growth;
  const device opened = open_device(typed.device);
  std::FILE* const people = typed.output.people();
  progress_line line{people, typed.output.quiet};
  const sdm_bench_report report = bench::run_sdm_bench(opened, typed.options, line.listener());
  line.clear();
  if (!typed.output.quiet) print_report(people, report, opened, typed);
  if (typed.output.json) write_json(typed.output, report_json(report, opened, typed));
  exit_code = exit_code_of(report.failure());
}

}  // namespace

void add_bench_sdm(verb_ref bench, int& exit_code) {
  const verb_ref verb = bench.add_subcommand(
      "sdm", "the sparse-delta-memory op and its layer, beside the bytes that they move");
  verb.footer(
      "small: 2 streams of 128 tokens, 1024 slots of width 256. large: 8192 tokens, 36864 slots "
      "of\n"
      "width 768; on a CPU it takes minutes, and some GB of memory.\n"
      "Example: reprise bench sdm --device auto --rounds 50 --json");
  const auto typed = std::make_shared<command_line>();
  command_line& t = *typed;
  verb.add_option("--rounds", t.options.rounds, "of calls [20]").option_text("N");
  verb.add_option("--sizes", t.options.sizes, "small, large [all on a GPU, else small]")
      .delimiter(',')
      .option_text("NAME,…");
  verb.add_flag("--no-growth", t.no_growth, "leave out what more and more slots cost");
  verb.add_option("--device", t.device, "auto, cpu, cuda:N or sim:seed=N [auto]")
      .option_text("NAME");
  add_output_options(verb, t.output);
  verb.callback([typed, &exit_code] { run(*typed, exit_code); });
}

}  // namespace reprise::app
