#include "apps/reprise/train_report.hpp"

#include <fmt/format.h>

#include <optional>

#include "apps/reprise/cache_json.hpp"
#include "apps/reprise/grad_figures.hpp"
#include "apps/reprise/run_figures.hpp"
#include "apps/reprise/version.hpp"

namespace reprise::app {

namespace {

using train::epoch_result;
using train::run_counts;
using train::train_options;
using train::train_report;
using train::window_times;

std::optional<double> mean_of(const window_times& times) {
  return mean_us(times.us, times.windows);
}

std::optional<double> replayed_us(const train_report& report, const train_options& options) {
  return options.graphed.any() ? mean_of(report.times) : std::nullopt;
}

std::optional<double> eager_us(const train_report& report, const train_options& options) {
  return mean_of(options.graphed.any() ? report.plain_times : report.times);
}

nlohmann::json as_json(const train::counted_part& one) {
  const part_counts& counts = one.counts;
  if (one.is_one_step) {
    return {{"captured", counts.captured},
            {"replayed", counts.replayed},
            {"eager", counts.eager},
            {"retirements", counts.retirements}};
  }
  nlohmann::json of_part = app::as_json(counts.calls);
  of_part["retirements"] = counts.retirements;
  of_part["empty_targets"] = counts.empty_targets;
  of_part["replays_inside_windows"] = counts.replays_inside_windows;
  return of_part;
}

nlohmann::json counts_json(const run_counts& counts) {
  nlohmann::json all = nlohmann::json::object();
  for (const train::counted_part& one : counts.parts) all[one.part] = as_json(one);
  all["updates"] = app::as_json(counts.updates);
  return all;
}

nlohmann::json inside_windows(const run_counts& counts) {
  nlohmann::json all = nlohmann::json::object();
  for (const train::counted_part& one : counts.parts) {
    if (!one.is_one_step) all[one.part] = one.counts.replays_inside_windows;
  }
  return all;
}

nlohmann::json epochs_json(const train_report& report) {
  nlohmann::json all = nlohmann::json::array();
  for (const epoch_result& one : report.epochs) {
    all.push_back({{"loss", one.loss},
                   {"validation_loss", one.validated.loss},
                   {"accuracy", one.validated.accuracy},
                   {"mask_accuracy", one.validated.mask_accuracy},
                   {"overflows", one.overflows},
                   {"seconds", one.seconds}});
  }
  return all;
}

nlohmann::json options_json(const train_options& o) {
  return {{"data", o.data.string()},
          {"epochs", o.epochs},
          {"batch", o.batch},
          {"accumulate", o.accumulate},
          {"subset", o.subset},
          {"unlabelled_every", o.unlabelled_every},
          {"hidden", o.hidden},
          {"width", o.width},
          {"mask_hidden", o.mask_hidden},
          {"mask_weight", as_typed(o.mask_weight)},
          {"dropout", as_typed(o.dropout)},
          {"learning_rate", as_typed(o.learning_rate)},
          {"clip", as_typed(o.clip)},
          {"ema", as_typed(o.ema)},
          {"loss_scale", text_of(o.scale)},
          {"precision", name_of_precision(o.casts)},
          {"graphed", text_of(o.graphed)},
          {"seed", o.seed},
          {"verify", o.verify}};
}

void print_epochs(std::FILE* to, const train_report& report) {
  fmt::print(to, "  epoch   loss    validation   accuracy   masks     skipped   seconds\n");
  for (std::size_t i = 0; i < report.epochs.size(); ++i) {
    const epoch_result& one = report.epochs[i];
    fmt::print(to, "  {:5}   {:6.4f}  {:10.4f}   {:6.2f} %   {:6.2f} %   {:5}   {:7.1f}\n", i + 1,
               one.loss, one.validated.loss, 100 * one.validated.accuracy,
               100 * one.validated.mask_accuracy, one.overflows, one.seconds);
  }
}

// Forwards and backwards of trunk and groups added up, then the loss.
void print_parts(std::FILE* to, const run_counts& counts) {
  grad_counts all;
  std::string inside;
  for (const train::counted_part& one : counts.parts) {
    all += one.counts.calls;
    if (!one.is_one_step) {
      inside += fmt::format("{}{} {}", inside.empty() ? "" : ", ", one.part,
                            one.counts.replays_inside_windows);
    }
  }
  print_calls(to, all);
  fmt::print(to, "  replayed onto gradients of their window: {}\n", inside);
  for (const train::counted_part& one : counts.parts) {
    if (!one.is_one_step) continue;
    fmt::print(to, "  {:<10}  captured {}, replayed {}, eager {}\n", one.part, one.counts.captured,
               one.counts.replayed, one.counts.eager);
  }
}

}  // namespace

std::string name_of_precision(cast_mode casts) {
  return casts == cast_mode::bf16 ? "bf16" : "fp32";
}

void print_report(std::FILE* to, const train_report& report, const train_options& options,
                  const train_context& run) {
  fmt::print(to, "{}, {} ({} images, {} to validate with), {} parameters, {}\n", run.device,
             options.data.string(), report.images, report.validated, report.parameters,
             name_of_precision(options.casts));
  print_epochs(to, report);
  print_parts(to, report.counts);
  print_steps(to, report.counts.updates, "updates");
  fmt::print(to, "  us a step   eager {}, replayed {}; a window each\n",
             shown_figure(eager_us(report, options)), shown_figure(replayed_us(report, options)));
  fmt::print(to, "  MB held     weights and what goes with them {}, recordings {}\n",
             megabytes(report.weight_bytes), megabytes(report.recording_bytes));
  if (report.compared && report.compared->first.empty()) {
    fmt::print(to,
               "  compared    losses and all that training changes after {} windows, and {} "
               "validations, equal those of a plain run, bit for bit\n",
               report.compared->windows, report.compared->epochs);
  }
  if (!run.picture.empty()) fmt::print(to, "  picture     {}\n", run.picture);
}

nlohmann::json report_json(const train_report& report, const train_options& options,
                           const train_context& run) {
  const auto& compared = report.compared;
  const epoch_result last = report.epochs.empty() ? epoch_result{} : report.epochs.back();
  return {
      {"device", run.device},
      {"version", version},
      {"seed", options.seed},
      {"options", options_json(options)},
      {"images", report.images},
      {"validated_images", report.validated},
      {"parameters", report.parameters},
      {"accuracy", last.validated.accuracy},
      {"mask_accuracy", last.validated.mask_accuracy},
      {"loss", last.loss},
      {"validation_loss", last.validated.loss},
      {"epochs", epochs_json(report)},
      {"loss_scale", report.scale},
      {"bitwise_equal", compared ? nlohmann::json(compared->first.empty()) : nlohmann::json{}},
      {"compared_windows", compared ? nlohmann::json(compared->windows) : nlohmann::json{}},
      {"compared_epochs", compared ? nlohmann::json(compared->epochs) : nlohmann::json{}},
      {"first_difference",
       compared && !compared->first.empty() ? nlohmann::json(compared->first) : nlohmann::json{}},
      {"counters", counts_json(report.counts)},
      {"planned", counts_json(report.planned)},
      {"replays_inside_windows", inside_windows(report.counts)},
      {"us_per_step",
       {{"eager", or_null(eager_us(report, options))},
        {"replayed", or_null(replayed_us(report, options))}}},
      {"bytes", {{"weights", report.weight_bytes}, {"recordings", report.recording_bytes}}},
      {"picture", run.picture.empty() ? nlohmann::json{} : nlohmann::json(run.picture)},
  };
}

}  // namespace reprise::app
