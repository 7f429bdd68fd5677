#include "apps/reprise/denoise_report.hpp"

#include <fmt/format.h>

#include <bit>
#include <optional>
#include <vector>

#include "apps/reprise/cache_json.hpp"
#include "apps/reprise/run_figures.hpp"
#include "apps/reprise/version.hpp"

namespace reprise::app {

namespace {

using denoise::denoise_options;
using denoise::denoise_report;
using denoise::image_request;

std::optional<double> replayed_us(const denoise_report& report) {
  return mean_us(report.times.replayed_us, report.times.replayed_steps);
}

// Of the plain run where there was one: the same steps as those replayed, and all of them.
std::optional<double> eager_us(const denoise_report& report) {
  const denoise::loop_times& t = report.compared ? report.plain_times : report.times;
  return mean_us(t.eager_us, t.eager_steps);
}

// A name for the bits of a request's images: equal runs have equal names (FNV-1a, 64 bits).
std::string digest_of(const std::vector<float>& images) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const float value : images) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) {
      hash = (hash ^ (bits >> shift & 0xffU)) * 0x100000001b3U;
    }
  }
  return fmt::format("{:016x}", hash);
}

nlohmann::json class_name(const denoise_report& report, std::int32_t of) {
  if (of == report.config.null_class()) return nullptr;
  return report.config.class_names[static_cast<std::size_t>(of)];
}

nlohmann::json request_json(const denoise_report& report, const image_request& asked,
                            const std::vector<float>& images) {
  nlohmann::json classes = nlohmann::json::array();
  for (const std::int32_t of : asked.classes) classes.push_back(class_name(report, of));
  return {{"steps", asked.steps},
          {"images", asked.images()},
          {"classes", classes},
          {"guidance", asked.guidance},
          {"seed", asked.seed},
          {"stochastic", asked.stochastic},
          {"digest", digest_of(images)},
          {"rows", report.config.rows},
          {"columns", report.config.columns}};
}

void print_requests(std::FILE* to, const denoise_options& options) {
  fmt::print(to, "  requests    {}:", options.requests.size());
  for (std::size_t i = 0; i < options.requests.size(); ++i) {
    if (i == 6) {
      fmt::print(to, " ...");
      break;
    }
    const image_request& asked = options.requests[i];
    fmt::print(to, "{} {} steps x {}", i == 0 ? "" : ",", asked.steps, asked.images());
  }
  fmt::print(to, "\n");
}

}  // namespace

void print_report(std::FILE* to, const denoise_report& report, const denoise_options& options,
                  const denoise_context& run) {
  fmt::print(to, "{}, {}\n", run.device, options.model.string());
  print_requests(to, options);
  print_steps(to, report.counts);
  fmt::print(to, "  us a step   eager {}, replayed {}\n", shown_figure(eager_us(report)),
             shown_figure(replayed_us(report)));
  fmt::print(to, "  MB held     weights {}, recordings {} ({} of them), eager runs {}\n",
             megabytes(report.weight_bytes), megabytes(report.cache.bytes.recordings),
             report.cache.recordings.size(), megabytes(report.cache.bytes.eager));
  if (options.weight_moves != 0) {
    fmt::print(to, "  weights     moved {} times\n", options.weight_moves);
  }
  if (report.compared && report.compared->unequal == 0) {
    fmt::print(to, "  compared    all images equal those of a plain run, bit for bit\n");
  }
  if (!run.sheet.empty()) fmt::print(to, "  sheet       {}\n", run.sheet);
}

void print_explanation(std::FILE* to, const denoise_report& report) {
  for (const auto& [rule, of_rule] : report.reasons) {
    fmt::print(to, "  {:>6} x    {}\n", of_rule.steps, of_rule.first);
  }
  if (report.reasons.empty()) fmt::print(to, "  no step ran eagerly\n");
  fmt::print(to, "{}", text_of(report.cache));
}

nlohmann::json report_json(const denoise_report& report, const denoise_options& options,
                           const denoise_context& run) {
  nlohmann::json requests = nlohmann::json::array();
  for (std::size_t i = 0; i < options.requests.size(); ++i) {
    requests.push_back(request_json(report, options.requests[i], report.images[i]));
  }
  nlohmann::json explanation = nlohmann::json::object();
  for (const auto& [rule, of_rule] : report.reasons) explanation[rule] = of_rule.first;
  return {
      {"device", run.device},
      {"version", version},
      {"seed", run.seed},
      {"model", options.model.string()},
      {"bitwise_equal",
       report.compared ? nlohmann::json(report.compared->unequal == 0) : nlohmann::json{}},
      {"steps", as_json(report.counts)},
      {"planned", as_json(report.planned)},
      {"eager_reasons", report.counts.eager_reasons},
      {"explanation", explanation},
      {"cache", as_json(report.cache)},
      {"evicted", report.counts.evicted},
      {"recordings", report.cache.recordings.size()},
      {"weight_moves", options.weight_moves},
      {"us_per_step",
       {{"eager", or_null(eager_us(report))}, {"replayed", or_null(replayed_us(report))}}},
      {"bytes",
       {{"total", report.weight_bytes + report.cache.bytes.recordings + report.cache.bytes.eager},
        {"weights", report.weight_bytes},
        {"recordings", report.cache.bytes.recordings},
        {"eager", report.cache.bytes.eager}}},
      {"requests", requests},
      {"sheet", run.sheet.empty() ? nlohmann::json{} : nlohmann::json(run.sheet)},
  };
}

}  // namespace reprise::app
