#include "bench/tap/tap_bench.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bench/replay/bare_chain.hpp"
#include "bench/tap/layer.hpp"
#include "reprise/base/error.hpp"

namespace reprise::bench {

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;
constexpr int more_small_points = 16;  // a node of 64 KiB takes too little to be told alone
constexpr int more_large_points = 1;

void require(const tap_bench_options& options) {
  const auto whole = [](const char* name, auto value, auto least, auto most) {
    if (value >= least && value <= most) return;
    throw usage_error{fmt::format("{} must be a whole number from {} to {}", name, least, most)};
  };
  const auto all_whole = [&](const char* name, const auto& values, auto least, auto most) {
    if (values.empty()) whole(name, least - 1, least, most);
    for (const auto value : values) whole(name, value, least, most);
  };
  whole("--layers", options.layers, 1, 512);
  whole("--layer-mib", options.layer_mib, std::int64_t{0}, std::int64_t{1024});
  all_whole("--kib", options.kib, std::int64_t{1}, std::int64_t{65'536});
  all_whole("--buffers", options.buffers, 2, 64);
  whole("--repeats", options.repeats, 0, 1'000'000);
  whole("--pairs", options.pairs, 0, 1'000'000);
  whole("--drain-mib", options.drain_mib, std::int64_t{0}, std::int64_t{4096});
  whole("--drains", options.drains, 0, 1'000'000);
  whole("--producer-mib", options.producer_mib, std::int64_t{0}, std::int64_t{4096});
  whole("--plans", options.plans, 1, 10'000'000);
}

tap_bench_options with_sizes_for(device_ref device, tap_bench_options options) {
  const bool gpu = device.bodies() == device_kind::cuda;
  const auto open = [gpu](auto& value, int of_gpu, int of_others) {
    if (value == 0) value = gpu ? of_gpu : of_others;
  };
  open(options.layer_mib, 32, 1);
  open(options.repeats, 100, 5);
  open(options.pairs, 1000, 20);
  open(options.drain_mib, 128, 4);
  open(options.drains, 20, 3);
  open(options.producer_mib, 64, 1);
  return options;
}

// In the buffers that are asked for first, more is measured.
void place(pool& memory, stream_ref stream, void* native, const progress& tell,
           tap_bench_report& report) {
  const tap_bench_options& o = report.options;
  const std::size_t weight_bytes = static_cast<std::size_t>(o.layer_mib) * mib;
  const layer_weights weights{memory, stream, o.layers, weight_bytes};
  for (const int buffers : o.buffers) {
    for (const std::int64_t kib : o.kib) {
      placement_options how;
      how.shape = {o.layers, weight_bytes, static_cast<std::size_t>(kib) * 1024, buffers};
      how.repeats = o.repeats;
      how.pairs = buffers == o.buffers.front() ? o.pairs : 0;
      report.placements.push_back(measure_placement(memory, stream, native, weights, how, tell));
    }
  }
}

}  // namespace

std::vector<const watched_counts*> tap_bench_report::runs() const {
  std::vector<const watched_counts*> all;
  const auto add = [&](const auto& parts) {
    for (const auto& part : parts) {
      for (const watched_counts& one : part.runs) all.push_back(&one);
    }
  };
  add(placements);
  add(drains);
  add(producers);
  return all;
}

std::string tap_bench_report::failure() const {
  for (const watched_counts* const one : runs()) {
    if (std::string found = one->failure(); !found.empty()) return found;
  }
  for (const planning_figure& one : planning) {
    if (std::string found = one.failure(); !found.empty()) return found;
  }
  return {};
}

tap_bench_report run_tap_bench(device_ref device, const tap_bench_options& options,
                               const progress& tell) {
  require(options);
  tap_bench_report report;
  report.options = with_sizes_for(device, options);
  const tap_bench_options& o = report.options;
  tell("planning", 0, 1);
  report.planning = measure_planning(o.plans);
  {
    stream work{device};
    pool memory{device, "bench tap"};
    void* const native = native_stream_of(work);
    report.timed_by_events = native != nullptr;
    place(memory, work, native, tell, report);
  }
  device.trim();
  stream work{device};
  pool memory{device, "bench tap"};
  void* const native = native_stream_of(work);
  for (const std::size_t bytes : {small_record_bytes, large_record_bytes}) {
    report.drains.push_back(measure_drain(
        memory, work, {bytes, static_cast<std::size_t>(o.drain_mib) * mib, o.drains}, tell));
  }
  const std::size_t large = static_cast<std::size_t>(o.producer_mib) * mib;
  report.producers.push_back(
      measure_producer(memory, work, native, {large, more_large_points, o.repeats, large}, tell));
  report.producers.push_back(measure_producer(
      memory, work, native, {small_producer_bytes, more_small_points, o.repeats, large}, tell));
  return report;
}

}  // namespace reprise::bench
