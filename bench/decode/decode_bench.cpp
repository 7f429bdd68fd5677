#include "bench/decode/decode_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/tap/monitor.hpp"
#include "workloads/decode/batching.hpp"
#include "workloads/decode/decode.hpp"

namespace reprise::bench {

namespace {

using decode::llama;
using decode::model_config;
using decode::request;

// Steps before those that are measured: the one that records, and a few that find memory in place.
constexpr std::int64_t steps_before = 4;
constexpr std::int64_t most_requests = 1024;

std::int64_t steps_of(const decode_bench_options& options) {
  return steps_before + options.tokens;
}

void require(const decode_bench_options& options) {
  const auto fits = [](std::int64_t size) { return size >= 1 && size <= most_requests; };
  if (options.batch_sizes.empty() || !std::ranges::all_of(options.batch_sizes, fits)) {
    throw usage_error{fmt::format("--batch-sizes must be whole numbers from 1 to {}, such as 1,32",
                                  most_requests)};
  }
  if (options.tokens < 1 || options.context < 1) {
    throw usage_error{"--tokens and --context must be 1 or more"};
  }
}

model_config config_of(const decode_bench_options& options) {
  decode::decode_options of_workload;
  of_workload.model = options.model;
  of_workload.random_config = options.config;
  model_config config = decode::config_of(of_workload);
  // The last token is never fed back, so a request fits that ends one past the context.
  const std::int64_t room = config.context - options.context - steps_before;
  if (options.tokens > room || options.context > config.context) {
    throw usage_error{fmt::format(
        "--context {} and --tokens {} do not fit the model's context of {}, with {} steps before "
        "those measured; give less of one",
        options.context, options.tokens, config.context, steps_before)};
  }
  config.end_tokens.clear();  // every request runs its whole length
  return config;
}

void require_points(const decode_bench_options& options, const model_config& config) {
  if (!options.watch) return;
  const point_set set = [&] {
    try {
      return point_set{options.watch->c_str()};
    } catch (const usage_error& wrong) {
      throw usage_error{fmt::format("--watch: {}", wrong.what())};
    }
  }();
  const std::vector<point> known = decode::marked_points(config);
  if (set.empty()) {
    throw usage_error{fmt::format("--watch '{}' names no point; the model marks {}:0-{}",
                                  *options.watch, known.front().kind, known.back().layer)};
  }
  if (const std::string none = set.unmatched(known); !none.empty()) {
    throw usage_error{fmt::format("--watch {}: '{}' is no point of this model; it marks {}:0-{}",
                                  *options.watch, none, known.front().kind, known.back().layer)};
  }
  if (options.tokens < 2) {
    throw usage_error{"--watch compares each step with its neighbour; give --tokens 2 or more"};
  }
}

std::vector<request> requests_of(std::int64_t batch, std::int64_t context,
                                 const model_config& config) {
  std::vector<std::vector<std::int32_t>> prompts(static_cast<std::size_t>(batch));
  for (std::int64_t r = 0; r < batch; ++r) {
    for (std::int64_t i = 0; i < context; ++i) {
      prompts[static_cast<std::size_t>(r)].push_back(
          static_cast<std::int32_t>((i * 7 + r * 13 + 1) % config.vocabulary));
    }
  }
  return decode::make_requests(prompts, config);
}

// Of one step: every matrix once, and of the embedding the rows of its tokens alone, unless the
// output is the same matrix.
std::size_t weight_bytes(const llama& model, std::int64_t batch) {
  const decode::model_weights& w = model.weights;
  std::size_t bytes = w.final_norm.value.bytes() + w.output.value.bytes();
  for (const decode::layer_weights& l : w.layers) {
    for (const parameter* p : {&l.attention_norm, &l.query, &l.key, &l.value, &l.attention_out,
                               &l.mlp_norm, &l.gate, &l.up, &l.down}) {
      bytes += p->value.bytes();
    }
  }
  const auto rows = static_cast<std::size_t>(batch * model.config.width);
  return bytes + rows * size_of(w.storage);
}

// The n-th step after prefill attends to the prompt and to n + 1 tokens.
std::size_t kv_bytes(const llama& model, std::int64_t batch, const decode_bench_options& options) {
  const model_config& c = model.config;
  const std::int64_t first = options.context + steps_before + 1;
  const std::int64_t twice_the_mean = 2 * first + options.tokens - 1;
  const std::int64_t elements_of_a_token = 2 * c.layers * c.kv_heads * c.head_dim;
  return static_cast<std::size_t>(batch * elements_of_a_token * twice_the_mean / 2) * sizeof(float);
}

step_counts planned_counts(std::int64_t batch, std::int64_t steps, bool record) {
  step_counts planned;
  const auto prefills = static_cast<std::uint64_t>(batch);
  const auto decodes = static_cast<std::uint64_t>(steps);
  planned.captured = record ? 1 : 0;
  planned.replayed = record ? decodes - 1 : 0;
  planned.eager = prefills + (record ? 0 : decodes);
  planned.eager_reasons["prefill"] = prefills;
  if (!record) planned.eager_reasons["recording is off"] = decodes;
  return planned;
}

using said = std::vector<std::vector<std::int32_t>>;  // by request

// Decodes one batch to its end, and gives what it said.
said decode_batch(stream_ref stream, const llama& model, std::int64_t batch, replay_cache& cache,
                  const decode_bench_options& options, decode::step_listener on_step,
                  decode::row_listener on_rows = {}) {
  decode::batch_runner runner{stream,
                              model,
                              cache,
                              {.sizes = {batch},
                               .max_tokens = steps_of(options) + 1,  // prefill gives the first
                               .sampling = {},
                               .on_step = std::move(on_step),
                               .on_rows = std::move(on_rows)}};
  std::vector<request> requests = requests_of(batch, options.context, model.config);
  runner.run(requests, [](std::size_t, const request&) {});
  cache.drain();
  said tokens;
  for (request& done : requests) tokens.push_back(std::move(done.generated));
  return tokens;
}

decode_way measure(stream_ref stream, const llama& model, std::int64_t batch, bool record,
                   const decode_bench_options& options, const progress& tell, said& tokens) {
  const std::string what = fmt::format("batch {}, {}", batch, record ? "replayed" : "eager");
  const auto steps = static_cast<std::size_t>(steps_of(options));
  std::vector<double> us;
  std::size_t step = 0;
  const auto on_step = [&](const decode::step_time& timed) {
    if (step >= static_cast<std::size_t>(steps_before)) us.push_back(timed.us);
    tell(what, ++step, steps);
  };
  tell(what, 0, steps);
  replay_cache cache{stream.device(), {.record = record}};
  tokens = decode_batch(stream, model, batch, cache, options, on_step);
  return {spread_of(std::move(us)), cache.counts(),
          planned_counts(batch, steps_of(options), record)};
}

// Every other step has its points on, so what drifts is in both halves alike. The first two of
// them record, and prefills are watched throughout, as those of `decode --watch` are.
watched_decode measure_watched(stream_ref stream, const llama& model, std::int64_t batch,
                               const decode_bench_options& options, const progress& tell,
                               const said& expected) {
  const std::string what = fmt::format("batch {}, watched", batch);
  const auto steps = static_cast<std::size_t>(steps_of(options));
  monitor eye{stream.device()};
  eye.watch({point_set{options.watch->c_str()}, row_mode::last()});
  std::uint64_t records = 0;
  eye.deliver_to([&](const tap_record&) { ++records; });
  replay_cache cache{stream.device()};
  cache.observe(eye.observer());

  std::size_t step = 0;
  const auto is_on = [&] { return step % 2 == 0; };
  std::vector<double> on_us, off_us;
  const auto on_step = [&](const decode::step_time& timed) {
    if (step >= static_cast<std::size_t>(steps_before))
      (is_on() ? on_us : off_us).push_back(timed.us);
    tell(what, ++step, steps);
  };
  const auto on_rows = [&](std::span<const request_rows> rows) {
    eye.enable(is_on() ? point_set::all() : point_set::none());
    eye.plan_step(rows);
  };
  tell(what, 0, steps);
  watched_decode made;
  const said tokens = decode_batch(stream, model, batch, cache, options, on_step, on_rows);
  eye.flush();
  made.equal = tokens == expected;
  for (const point_counts& one : eye.counts().points) made.points += one.planned != 0 ? 1 : 0;
  made.records = records;
  // Of each request a row for each point: of its prefill, and of every other step.
  made.expected = made.points * static_cast<std::uint64_t>(batch) * (1 + (steps + 1) / 2);
  std::vector<double> adds;
  for (std::size_t i = 0; i < std::min(on_us.size(), off_us.size()); ++i) {
    adds.push_back(on_us[i] - off_us[i]);
  }
  made.adds_us = median_interval_of(std::move(adds));
  made.on_us = spread_of(std::move(on_us));
  made.off_us = spread_of(std::move(off_us));
  made.steps.counts = cache.counts();
  made.steps.planned = planned_counts(batch, steps_of(options), true);
  ++made.steps.planned.captured;  // with its points, and without
  --made.steps.planned.replayed;
  return made;
}

std::string text_of(const step_counts& counts) {
  return fmt::format("captured {}, replayed {}, eager {}", counts.captured, counts.replayed,
                     counts.eager);
}

}  // namespace

bool decode_way::as_planned() const {
  return counts.captured == planned.captured && counts.replayed == planned.replayed &&
         counts.eager == planned.eager && counts.eager_reasons == planned.eager_reasons;
}

std::string decode_bench_report::failure() const {
  for (const decode_row& row : rows) {
    for (const decode_way* way : {&row.eager, &row.replayed}) {
      if (way->as_planned()) continue;
      return fmt::format(
          "batch {}: steps ran as {}, planned {}; its figures are of something else, so mend that "
          "before reading them",
          row.batch, text_of(way->counts), text_of(way->planned));
    }
    if (const auto& seen = row.watched; seen) {
      if (!seen->steps.as_planned()) {
        return fmt::format(
            "batch {}: watched steps ran as {}, planned {}; its figures are of something else, so "
            "mend that before reading them",
            row.batch, text_of(seen->steps.counts), text_of(seen->steps.planned));
      }
      if (seen->points == 0 || seen->records != seen->expected) {
        return fmt::format(
            "batch {}: {} points gave {} records, and {} were to come; give --watch points that "
            "the model marks, such as resid_pre:*",
            row.batch, seen->points, seen->records, seen->expected);
      }
    }
    if (!row.equal || (row.watched && !row.watched->equal)) {
      return fmt::format(
          "batch {}: replayed steps gave other tokens than eager ones; find the step with "
          "`reprise run decode --verify`",
          row.batch);
    }
  }
  return {};
}

decode_bench_report run_decode_bench(device_ref device, const decode_bench_options& options,
                                     const progress& tell) {
  require(options);
  const model_config config = config_of(options);
  require_points(options, config);
  decode_bench_report report;
  tell("copies", 0, 1);
  const bool gpu = device.bodies() == device_kind::cuda;
  report.copies = measure_copies(device, std::size_t{gpu ? 1024U : 64U} << 20);

  tell("weights", 0, 1);
  stream work{device};
  pool weight_memory{device, "weights"};
  pool cache_memory{device, "key/value cache"};
  decode::model_weights weights =
      options.config
          ? random_weights(weight_memory, work, config, decode::weight_storage::as_file, 0)
          : load_weights(weight_memory, work, options.model, config,
                         decode::weight_storage::as_file);
  report.weights = weights.storage;
  const llama model{cache_memory,
                    work,
                    config,
                    std::move(weights),
                    std::ranges::max(options.batch_sizes),
                    options.context + steps_of(options)};
  work.synchronize();

  for (const std::int64_t batch : options.batch_sizes) {
    decode_row row;
    row.batch = batch;
    said eager;
    said replayed;
    row.eager = measure(work, model, batch, false, options, tell, eager);
    row.replayed = measure(work, model, batch, true, options, tell, replayed);
    row.equal = eager == replayed;
    if (options.watch) {
      row.watched = measure_watched(work, model, batch, options, tell, eager);
    }
    row.weight_bytes = weight_bytes(model, batch);
    row.kv_bytes = kv_bytes(model, batch, options);
    row.floor_us =
        static_cast<double>(row.weight_bytes + row.kv_bytes) / report.copies.bytes_per_us;
    report.rows.push_back(std::move(row));
  }
  return report;
}

}  // namespace reprise::bench
