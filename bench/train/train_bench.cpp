#include "bench/train/train_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "bench/grad/bare_launch.hpp"
#include "bench/measure/silence.hpp"
#include "bench/replay/bare_chain.hpp"
#include "reprise/base/clock.hpp"
#include "reprise/base/error.hpp"

namespace reprise::bench {

namespace {

constexpr int warm_up_steps = 3;  // recorded, its backward recorded, replayed
constexpr std::int64_t measured_batch = 32;

void require(const train_bench_options& options) {
  const auto in_range = [](const char* name, std::int64_t value, std::int64_t least,
                           std::int64_t most) {
    if (value >= least && value <= most) return;
    throw usage_error{fmt::format("{} must be a whole number from {} to {}", name, least, most)};
  };
  if (options.batches.empty()) throw usage_error{"--batch must be whole numbers, such as 32,512"};
  for (const std::int64_t batch : options.batches) in_range("--batch", batch, 1, 1 << 16);
  in_range("--layers", options.layers, 2, 96);
  in_range("--width", options.width, 1, 4096);
  in_range("--steps", options.steps, 1, 1'000'000);
}

// Of a step that is timed whole: its calls, and until the device was done.
struct measured {
  timed_calls calls;
  std::vector<double> step_us;
};

template <class Step>
void time(const call_timer& timer, measured& into, Step&& step) {
  double began = 0;
  timer.time(into.calls, [&] {
    began = now_us();
    step();
  });
  timer.stream().synchronize();
  into.step_us.push_back(now_us() - began);
}

std::uint64_t made(const timed_calls& calls, seam_call kind) {
  return calls.made[static_cast<std::size_t>(kind)];
}

// In microseconds: figures of docs/bench.md, on an H200, for 24 layers of 256 and a batch of 32.
std::optional<double> limit_of(const std::string& way, const deep_shape& shape) {
  if (shape.layers != 24 || shape.width != 256 || shape.batch != measured_batch) return {};
  if (way == whole_way) return 450;
  if (way == pair_way) return 20;
  if (way == pairs_way) return 200;
  return {};
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

train_size measure(pool& memory, const call_timer& timer, const deep_shape& shape, int steps,
                   const progress& tell) {
  const stream_ref stream = timer.stream();
  std::vector<train_way> ways = ways_of(shape, memory, stream);
  train_size size{.shape = shape, .moved_bytes = bytes_of_a_step(shape), .rows = {}};

  timed_calls eager_step;
  for (int i = 0; i < warm_up_steps; ++i) {
    for (train_way& way : ways) {
      timed_calls calls;
      timer.time(calls, way.step);
      if (!way.records) eager_step = std::move(calls);
      stream.synchronize();
    }
  }
  size.nodes = ways.back().nodes();

  const chain_sources sources{memory, stream};
  bare_launch bare{memory, stream, sources, static_cast<std::int64_t>(size.nodes),
                   native_stream_of(stream)};
  std::vector<measured> seen(ways.size());
  measured bare_seen;
  const auto total = static_cast<std::size_t>(steps);
  const std::size_t told_every = std::max<std::size_t>(1, total / 50);
  const std::string told = fmt::format("training steps of {}", shape.batch);
  for (std::size_t i = 0; i < total; ++i) {
    if (i % told_every == 0) tell(told, i, total);
    for (std::size_t w = 0; w < ways.size(); ++w) time(timer, seen[w], ways[w].step);
    if (bare.is_here()) time(timer, bare_seen, [&] { bare.launch(); });
  }
  tell(told, total, total);

  const std::vector<float> expected = ways.front().weights();
  size.weight_bytes = expected.size() * sizeof(float);
  size.bare_us = spread_of(bare_seen.step_us);
  const spread bare_host = spread_of(bare_seen.calls.us);
  for (std::size_t w = 0; w < ways.size(); ++w) {
    const train_way& way = ways[w];
    const seam_plan planned = way.records ? seam_plan{.launches = way.launches}
                                          : seam_plan{0, made(eager_step, seam_call::copy),
                                                      made(eager_step, seam_call::kernel)};
    train_row row{
        .way = way.name,
        .host = figure_of(way.name, std::move(seen[w].calls), planned,
                          fmt::format("a bare launch of {} nodes", size.nodes), bare_host),
        .step_us = spread_of(std::move(seen[w].step_us)),
        .limit_us = bare.is_here() ? limit_of(way.name, shape) : std::nullopt,
        .limit_is_over_the_whole = way.name != whole_way};
    row.equal = same_bits(way.weights(), expected);
    size.rows.push_back(std::move(row));
  }
  stream.synchronize();
  return size;
}

}  // namespace

std::optional<bool> train_row::within(const spread& whole_us) const {
  if (!limit_us) return {};
  const double floor = limit_is_over_the_whole ? whole_us.median : 0;
  return step_us.median - floor <= *limit_us;
}

const spread& train_size::whole_us() const {
  return std::ranges::find(rows, whole_way, &train_row::way)->step_us;
}

std::string train_bench_report::failure() const {
  for (const train_size& size : sizes) {
    for (const train_row& row : size.rows) {
      if (std::string found = row.host.failure(); !found.empty()) {
        return fmt::format("batch {}: {}", size.shape.batch, found);
      }
      if (row.equal) continue;
      return fmt::format(
          "batch {}, {}: the weights are not those of the eager steps; its figures are of other "
          "work, so report it with the command that showed it",
          size.shape.batch, row.way);
    }
  }
  return {};
}

train_bench_report run_train_bench(device_ref device, const call_counts& counts,
                                   const train_bench_options& options, const progress& tell) {
  require(options);
  const silence eager_runs_are_planned;
  stream work{device};
  pool memory{device, "bench train"};
  const call_timer timer{work, counts};
  train_bench_report report;
  report.bare = native_stream_of(work) != nullptr;
  for (const std::int64_t batch : options.batches) {
    report.sizes.push_back(
        measure(memory, timer, {.layers = options.layers, .width = options.width, .batch = batch},
                options.steps, tell));
  }
  return report;
}

}  // namespace reprise::bench
