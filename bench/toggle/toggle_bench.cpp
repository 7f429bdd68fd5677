#include "bench/toggle/toggle_bench.hpp"

#include <fmt/format.h>

#include "bench/replay/bare_chain.hpp"
#include "reprise/base/error.hpp"

namespace reprise::bench {

namespace {

constexpr std::size_t residual_bytes_of_toggle = 8U << 10;
constexpr std::size_t weight_bytes_of_gpu = std::size_t{1} << 30;  // of all layers: no cache has it
constexpr std::size_t weight_bytes_of_others = 16U << 10;
constexpr std::size_t weights_come_in = 64U << 10;
constexpr int buffers_of_toggle = 3;

void require(const toggle_bench_options& options) {
  const auto whole = [](const char* name, int value, int least, int most) {
    if (value >= least && value <= most) return;
    throw usage_error{fmt::format("{} must be a whole number from {} to {}", name, least, most)};
  };
  for (const int points : options.points) whole("--points", points, 4, 512);
  whole("--repeats", options.repeats, 0, 100'000);
  whole("--pairs", options.pairs, 0, 100'000);
  whole("--schedules", options.schedules, 0, 1'000'000);
}

toggle_bench_options with_sizes_for(bool gpu, toggle_bench_options options) {
  const auto open = [gpu](int& value, int of_gpu, int of_others) {
    if (value == 0) value = gpu ? of_gpu : of_others;
  };
  if (options.points.empty()) {
    options.points = gpu ? std::vector<int>{36, 256} : std::vector<int>{4, 12};
  }
  open(options.repeats, 200, 4);
  open(options.pairs, 1000, 10);
  open(options.schedules, 1000, 20);
  return options;
}

std::size_t weight_bytes_of(bool gpu, int layers) {
  if (!gpu) return weight_bytes_of_others;
  const std::size_t each = weight_bytes_of_gpu / static_cast<std::size_t>(layers);
  return each - each % weights_come_in;
}

}  // namespace

std::string toggle_bench_report::failure() const {
  for (const watched_counts& one : all.watched) {
    if (std::string found = one.failure(); !found.empty()) return found;
  }
  for (const switched_counts& one : all.switched) {
    if (std::string found = one.failure(); !found.empty()) return found;
  }
  return {};
}

toggle_bench_report run_toggle_bench(device_ref device, const toggle_bench_options& options,
                                     const progress& tell) {
  require(options);
  const bool gpu = device.bodies() == device_kind::cuda;
  toggle_bench_report report;
  report.options = with_sizes_for(gpu, options);
  const toggle_bench_options& o = report.options;
  for (std::size_t i = 0; i < o.points.size(); ++i) {
    const int layers = o.points[i];
    {
      stream work{device};
      pool memory{device, "bench toggle"};
      void* const native = native_stream_of(work);
      report.timed_by_events = native != nullptr;
      const std::size_t bytes = weight_bytes_of(gpu, layers);
      const layer_weights weights{memory, work, layers, bytes};
      const switching_options how{{layers, bytes, residual_bytes_of_toggle, buffers_of_toggle},
                                  o.repeats,
                                  o.pairs,
                                  o.schedules};
      switching_bench measured{memory, work, native, weights, how, tell, report.all};
      measured.idle();
      if (i + 1 == o.points.size()) measured.switching();
      measured.finish();
    }
    device.trim();
  }
  return report;
}

}  // namespace reprise::bench
