#include "apps/reprise/memory_report.hpp"

#include <fmt/format.h>

#include <optional>

#include "apps/reprise/cache_json.hpp"
#include "apps/reprise/grad_figures.hpp"
#include "apps/reprise/run_figures.hpp"
#include "apps/reprise/utf8.hpp"
#include "apps/reprise/version.hpp"

namespace reprise::app {

namespace {

using memory::memory_options;
using memory::memory_report;
using memory::run_counts;
using memory::step_times;

std::optional<double> mean_of(const step_times& times) {
  return mean_us(times.us, times.steps);
}

std::optional<double> replayed_us(const memory_report& report, const memory_options& options) {
  return options.eager ? std::nullopt : mean_of(report.times);
}

std::optional<double> eager_us(const memory_report& report, const memory_options& options) {
  return mean_of(options.eager ? report.times : report.plain_times);
}

grad_counts total_of(const run_counts& counts) {
  grad_counts all;
  for (const memory::op_counts& one : counts.ops) all += one.counts;
  return all;
}

// The layers of the network added up: one by one they are many, and mostly the same.
nlohmann::json counts_json(const run_counts& counts) {
  run_counts network = counts;
  network.ops.erase(network.ops.begin());
  network.ops.pop_back();
  return {{"embedding", as_json(counts.ops.front().counts)},
          {"network", as_json(total_of(network))},
          {"loss", as_json(counts.ops.back().counts)},
          {"total", as_json(total_of(counts))},
          {"updates", as_json(counts.updates)},
          {"sample", as_json(counts.samples)}};
}

nlohmann::json options_json(const memory_options& o) {
  return {{"text", o.text.string()},
          {"steps", o.steps},
          {"batch", o.batch},
          {"context", o.context},
          {"layers", o.layers},
          {"width", o.width},
          {"side", o.side},
          {"writes", o.writes},
          {"reads", o.reads},
          {"key_width", o.key_width},
          {"chunk", o.chunk},
          {"storage", name_of(o.storage)},
          {"saved_rows", name_of_rows(o.rows)},
          {"wide_bank_grad", o.wide_bank_grad},
          {"on_conflict", text_of(o.conflict)},
          {"accumulate", o.accumulate},
          {"regions", o.regions},
          {"learning_rate", as_typed(o.learning_rate)},
          {"seed", o.seed},
          {"prompt", as_utf8(o.prompt)},
          {"sample", o.sample},
          {"temperature", as_typed(o.temperature)},
          {"eager", o.eager},
          {"verify", o.verify}};
}

void print_sample(std::FILE* to, const memory_report& report, const memory_options& options) {
  if (options.sample == 0) return;
  utf8_filter filter{true};
  std::string shown = filter.feed(options.prompt + report.sample);
  shown += filter.finish();
  fmt::print(to, "\n{}\n", shown);
}

}  // namespace

std::string name_of_rows(saved_rows rows) {
  switch (rows) {
    case saved_rows::as_stored: return "stored";
    case saved_rows::fp8: return "fp8";
    case saved_rows::int4: return "int4";
  }
  return "?";
}

void print_report(std::FILE* to, const memory_report& report, const memory_options& options,
                  const memory_context& run) {
  fmt::print(to, "{}, {} ({} bytes), {} parameters\n", run.device, options.text.string(),
             report.text_bytes, report.parameters);
  fmt::print(to, "  loss        {:.3f}, then {:.3f} after {} steps\n", report.loss_first,
             report.loss_last, options.steps);
  print_calls(to, total_of(report.counts));
  print_steps(to, report.counts.updates, "updates");
  print_steps(to, report.counts.samples, "sample");
  fmt::print(to, "  us a step   eager {}, replayed {}\n", shown_figure(eager_us(report, options)),
             shown_figure(replayed_us(report, options)));
  fmt::print(to, "  MB held     weights, gradients and moments {}, recordings {}\n",
             megabytes(report.weight_bytes), megabytes(report.recording_bytes));
  if (report.compared && report.compared->first.empty()) {
    fmt::print(to,
               "  compared    losses, weights and moments of {} steps, and the sample, equal those "
               "of a plain run, bit for bit\n",
               report.compared->steps);
  }
  print_sample(to, report, options);
}

nlohmann::json report_json(const memory_report& report, const memory_options& options,
                           const memory_context& run) {
  const auto& compared = report.compared;
  return {
      {"device", run.device},
      {"version", version},
      {"options", options_json(options)},
      {"parameters", report.parameters},
      {"text_bytes", report.text_bytes},
      {"bitwise_equal", compared ? nlohmann::json(compared->first.empty()) : nlohmann::json{}},
      {"compared_steps", compared ? nlohmann::json(compared->steps) : nlohmann::json{}},
      {"first_difference",
       compared && !compared->first.empty() ? nlohmann::json(compared->first) : nlohmann::json{}},
      {"counters", counts_json(report.counts)},
      {"planned", counts_json(report.planned)},
      {"loss_first", report.loss_first},
      {"loss_last", report.loss_last},
      {"us_per_step",
       {{"eager", or_null(eager_us(report, options))},
        {"replayed", or_null(replayed_us(report, options))}}},
      {"bytes", {{"weights", report.weight_bytes}, {"recordings", report.recording_bytes}}},
      {"sample", as_utf8(report.sample)},
  };
}

}  // namespace reprise::app
