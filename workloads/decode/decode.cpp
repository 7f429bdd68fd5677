#include "workloads/decode/decode.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "reprise/base/error.hpp"

namespace reprise::decode {

namespace {

std::vector<std::int64_t> checked_sizes(std::vector<std::int64_t> sizes) {
  std::ranges::sort(sizes);
  const auto repeated = std::ranges::unique(sizes);
  sizes.erase(repeated.begin(), repeated.end());
  if (sizes.empty() || sizes.front() < 1 || sizes.back() > 4096) {
    throw usage_error{"batch sizes must be whole numbers from 1 to 4096, such as 1,2,4,8"};
  }
  return sizes;
}

// Positions a slot must hold: prompt and new tokens of the longest request. Padding writes one
// position of the dummy slot for each padded row.
std::int64_t capacity_for(const std::vector<request>& requests, const decode_options& options,
                          const model_config& config, std::int64_t largest_batch) {
  std::int64_t longest = 0;
  for (const request& asked : requests) {
    const auto prompt = static_cast<std::int64_t>(asked.prompt.size());
    const std::int64_t room = config.context - prompt;
    longest = std::max(longest, prompt + std::min(options.tokens, room));
  }
  return std::max(longest, largest_batch);
}

// What the cache must have counted if every step went as it should.
step_counts planned_counts(const batch_plan& plan, const decode_options& options, bool observed) {
  step_counts planned;
  std::uint64_t steps = 0;
  for (const auto& [size, count] : plan.decode_steps) steps += count;
  planned.eager = plan.prefills;
  if (plan.prefills != 0) planned.eager_reasons["prefill"] = plan.prefills;
  if (options.eager || observed) {
    planned.eager += steps;
    if (steps != 0) {
      planned.eager_reasons[options.eager ? "recording is off" : "observer installed"] = steps;
    }
  } else {
    planned.captured = plan.decode_steps.size();
    planned.replayed = steps - planned.captured;
  }
  return planned;
}

std::string counts_text(const step_counts& counts) {
  std::string text = fmt::format("captured {}, replayed {}, eager {}", counts.captured,
                                 counts.replayed, counts.eager);
  for (const auto& [rule, count] : counts.eager_reasons)
    text += fmt::format(", {} {}", count, rule);
  return text;
}

}  // namespace

bool decode_report::as_planned() const {
  return counts.captured == planned.captured && counts.replayed == planned.replayed &&
         counts.eager == planned.eager && counts.eager_reasons == planned.eager_reasons;
}

std::string decode_report::failure() const {
  if (!as_planned()) {
    return fmt::format("steps did not run as planned: {}; planned {}; the reasons above say which",
                       counts_text(counts), counts_text(planned));
  }
  if (verified && verified->unequal != 0) {
    return fmt::format("{} of {} replays differ from their eager run: {}", verified->unequal,
                       verified->steps, verified->first);
  }
  return {};
}

model_config config_of(const decode_options& options) {
  if (options.random_config) return read_model_config(*options.random_config);
  if (!std::filesystem::is_directory(options.model)) {
    throw usage_error{
        fmt::format("model folder {}: not a folder; give one with config.json and "
                    "model.safetensors",
                    options.model.string())};
  }
  return read_model_config(options.model / "config.json");
}

std::vector<point> marked_points(const model_config& config) {
  std::vector<point> points;
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    points.push_back({"resid_pre", static_cast<int>(layer)});
  }
  return points;
}

decode_report run_decode(device_ref device, const decode_options& options,
                         const token_listener& listen, std::shared_ptr<mark_observer> observer,
                         row_listener rows) {
  const model_config config = config_of(options);
  if (options.tokens < 1) throw usage_error{"--tokens must be 1 or more"};
  const std::vector<std::int64_t> sizes = checked_sizes(options.batch_sizes);
  decode_report report;
  report.requests = make_requests(options.prompts, config);
  const std::int64_t slots =
      std::min(sizes.back(), static_cast<std::int64_t>(report.requests.size()));
  const std::int64_t capacity = capacity_for(report.requests, options, config, sizes.back());

  stream work{device};
  pool weight_memory{device, "weights"};
  pool cache_memory{device, "key/value cache"};
  model_weights weights =
      options.random_config
          ? random_weights(weight_memory, work, config, options.weights, options.sampling.seed)
          : load_weights(weight_memory, work, options.model, config, options.weights);
  report.weights = weights.storage;
  const llama model{cache_memory, work, config, std::move(weights), slots, capacity};

  const bool observed = observer != nullptr && observer->recorded_as() == 0;
  replay_cache steps{device,
                     {.record = !options.eager, .verify = options.verify && !options.eager}};
  if (observer != nullptr) steps.observe(std::move(observer));
  batch_runner runner{work,
                      model,
                      steps,
                      {.sizes = sizes,
                       .max_tokens = options.tokens,
                       .sampling = options.sampling,
                       .on_rows = std::move(rows)}};
  runner.run(report.requests, listen);
  steps.drain();

  report.counts = steps.counts();
  report.planned = planned_counts(runner.plan(), options, observed);
  if (const verification* verified = steps.verified()) report.verified = *verified;
  report.times = runner.times();
  report.cache = steps.report();
  report.bytes = {weight_memory.bytes(), cache_memory.bytes(), steps.bytes()};
  return report;
}

}  // namespace reprise::decode
