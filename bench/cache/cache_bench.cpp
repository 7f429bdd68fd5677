#include "bench/cache/cache_bench.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bench/replay/bare_chain.hpp"
#include "reprise/base/error.hpp"

namespace reprise::bench {

namespace {

constexpr std::int64_t most_nodes = 100'000;
constexpr int most_recordings = 100'000;
constexpr int most_repeats = 1'000'000;
constexpr std::uint64_t most_cycles = 1'000'000'000;

void require(const cache_bench_options& options) {
  const auto fits = [](std::int64_t n) { return n >= 1 && n <= most_nodes; };
  if (options.nodes.empty() || !std::ranges::all_of(options.nodes, fits)) {
    throw usage_error{
        fmt::format("--nodes must be whole numbers from 1 to {}, such as 10,100,1000", most_nodes)};
  }
  const auto in_range = [](const char* name, auto value, auto least, auto most) {
    if (value >= least && value <= most) return;
    throw usage_error{fmt::format("{} must be a whole number from {} to {}", name, least, most)};
  };
  in_range("--recordings", options.recordings, 1, most_recordings);
  in_range("--repeats", options.repeats, 1, most_repeats);
  in_range("--captures", options.captures, 1, most_repeats);
  in_range("--cycles", options.cycles, std::uint64_t{2}, most_cycles);
}

}  // namespace

std::string cache_bench_report::failure() const {
  std::string found = keys.failure();
  return found.empty() ? cycles.failure() : found;
}

cache_bench_report run_cache_bench(device_ref device, const cache_bench_options& options,
                                   const progress& tell) {
  require(options);
  stream work{device};
  pool memory{device, "bench cache"};
  void* const native = native_stream_of(work);
  const std::int64_t nodes = options.nodes.front();

  cache_bench_report report;
  report.bare = native != nullptr;
  report.keys =
      measure_keys(memory, work, native, {nodes, options.recordings, options.repeats}, tell);
  report.captures = measure_captures(memory, work, native,
                                     {options.nodes, options.captures, options.recordings}, tell);
  report.keys.prepare.floor = "bare capture";
  report.keys.prepare.floor_us = report.captures.bare_us;
  report.cycles = run_cycles(memory, work, nodes, options.cycles, tell);
  return report;
}

}  // namespace reprise::bench
