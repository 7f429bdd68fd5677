#include "workloads/denoise/denoise.hpp"

#include <fmt/format.h>

#include <bit>
#include <limits>
#include <utility>

#include "reprise/base/clock.hpp"
#include "reprise/base/error.hpp"
#include "reprise/loop/runner.hpp"
#include "workloads/denoise/denoiser_component.hpp"

namespace reprise::denoise {

namespace {

std::string counts_text(const step_counts& counts) {
  std::string text = fmt::format("captured {}, replayed {}, evicted {}, eager {}", counts.captured,
                                 counts.replayed, counts.evicted, counts.eager);
  for (const auto& [rule, count] : counts.eager_reasons) {
    text += fmt::format(", {} {}", count, rule);
  }
  return text;
}

bool same(const step_counts& a, const step_counts& b) {
  return a.captured == b.captured && a.replayed == b.replayed && a.eager == b.eager &&
         a.eager_reasons == b.eager_reasons && a.evicted == b.evicted;
}

void check(const denoise_options& options, const denoiser_config& config) {
  if (options.requests.empty()) throw usage_error{"denoise: no request; give one at least"};
  for (const image_request& asked : options.requests) {
    if (asked.steps < 1 || asked.classes.empty()) {
      throw usage_error{
          fmt::format("denoise: a request of {} steps and {} images; give 1 or more "
                      "of each",
                      asked.steps, asked.images())};
    }
    for (const std::int32_t of : asked.classes) {
      if (of >= 0 && of <= config.null_class()) continue;
      throw usage_error{fmt::format("denoise: class {} is none of this model's; it has 0 to {}", of,
                                    config.null_class() - 1)};
    }
  }
}

std::vector<float> on_host(stream_ref stream, const buffer<float>& from) {
  std::vector<float> values(from.size());
  copy(stream, read(from), write<float>{view<float>{values.data(), values.size()}});
  stream.synchronize();
  return values;
}

// One run of all requests on one cache.
class denoise_run {
 public:
  denoise_run(device_ref device, stream_ref stream, denoiser& model, const cache_options& options)
      : stream_{stream},
        model_{model},
        memory_{device, "images"},
        cache_{device, options},
        runner_{cache_},
        loop_{stream, model, [this](const step_result& done) { take(done); }} {}

  void begin(const std::vector<image_request>& asked) {
    for (const image_request& each : asked) requests_.push_back(loop_.begin(memory_, each));
  }

  void step(std::size_t i) {
    started_ = now_us();
    runner_.step(stream_, loop_, requests_[i]);
  }

  void move_weights() { model_.weights.move(stream_); }
  void sleep() { cache_.sleep(); }

  std::vector<std::vector<float>> images() {
    std::vector<std::vector<float>> all;
    for (const sampler::request& r : requests_) all.push_back(on_host(stream_, r.x));
    cache_.drain();
    return all;
  }

  const replay_cache& cache() const { return cache_; }
  const loop_times& times() const { return times_; }
  const std::map<std::string, explained>& reasons() const { return reasons_; }

 private:
  void take(const step_result& done) {
    stream_.synchronize();
    const double us = now_us() - started_;
    if (done.how == ran::replayed) {
      times_.replayed_us += us;
      ++times_.replayed_steps;
    } else if (done.how == ran::eager) {
      times_.eager_us += us;
      ++times_.eager_steps;
      explained& of_rule = reasons_[done.why->rule];
      if (of_rule.steps++ == 0) of_rule.first = done.why->text();
    }
  }

  stream_ref stream_;
  denoiser& model_;
  pool memory_;
  replay_cache cache_;
  loop_runner runner_;
  sampler loop_;
  std::vector<sampler::request> requests_;
  double started_ = 0;
  loop_times times_;
  std::map<std::string, explained> reasons_;
};

image_comparison compare(const std::vector<std::vector<float>>& images,
                         const std::vector<std::vector<float>>& plain) {
  image_comparison found;
  for (std::size_t r = 0; r < images.size(); ++r) {
    for (std::size_t i = 0; i < images[r].size(); ++i) {
      const float a = images[r][i];
      const float b = plain[r][i];
      if (std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b)) continue;
      if (found.unequal++ == 0) {
        found.first = fmt::format("request {}, element {}: {} is not {}", r, i, a, b);
      }
    }
  }
  return found;
}

}  // namespace

std::string denoise_report::failure() const {
  if (!same(counts, planned)) {
    return fmt::format("steps did not run as planned: {}; planned {}; --explain says why",
                       counts_text(counts), counts_text(planned));
  }
  if (compared && compared->unequal != 0) {
    return fmt::format("{} elements differ from the plain run: {}", compared->unequal,
                       compared->first);
  }
  return {};
}

denoise_report run_denoise(device_ref device, const denoise_options& options,
                           const progress_listener& listen) {
  if (options.eager && options.weight_moves != 0) {
    throw usage_error{
        "denoise: moving weights shows what becomes of recordings, and an eager run "
        "has none; leave one out"};
  }
  stream work{device};
  component_registry registry = builtin_components();
  add_components(registry, options.model);
  component_store components{std::move(registry)};
  const auto loaded = components.get(denoiser_kind, device);
  denoiser& model = loaded->object->model;
  check(options, model.config);

  std::size_t total = 0;
  for (const image_request& asked : options.requests) {
    total += static_cast<std::size_t>(loop_steps(asked));
  }
  const bool compares = options.verify && !options.eager;
  const std::size_t all = compares ? 2 * total : total;
  std::size_t done = 0;
  const auto step_done = [&] {
    ++done;
    if (listen) listen(done, all);
  };
  // The plain run takes one request after the other and records nothing.
  const auto run_plainly = [&](denoise_run& run) {
    for (std::size_t i = 0; i < options.requests.size(); ++i) {
      for (std::int64_t k = 0; k < loop_steps(options.requests[i]); ++k) {
        run.step(i);
        step_done();
      }
    }
  };

  denoise_report report;
  report.config = model.config;
  cache_options recording{.record = !options.eager};
  // Whoever drops recordings on purpose does not want their keys to count as thrashing.
  if (!options.sleeps.empty()) recording.churn_limit = std::numeric_limits<int>::max();
  denoise_run run{device, work, model, recording};
  run.begin(options.requests);
  if (options.eager) {
    run_plainly(run);
  } else {
    take_turns(
        options.requests, options.weight_moves,
        [&](std::size_t i) {
          run.step(i);
          step_done();
          if (sleeps_after(options, static_cast<std::int64_t>(done))) run.sleep();
        },
        [&] { run.move_weights(); });
  }
  report.images = run.images();
  report.counts = run.cache().counts();
  report.planned = planned_counts(options);
  report.times = run.times();
  report.cache = run.cache().report();
  report.weight_bytes = loaded->object->memory.used();
  report.reasons = run.reasons();
  if (compares) {
    denoise_run plain{device, work, model, {.record = false}};
    plain.begin(options.requests);
    run_plainly(plain);
    report.compared = compare(report.images, plain.images());
    report.plain_times = plain.times();
  }
  return report;
}

}  // namespace reprise::denoise
