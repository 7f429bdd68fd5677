#include "bench/tap/producer_rates.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <utility>

#include "bench/tap/block_step.hpp"
#include "bench/tap/step_timer.hpp"
#include "reprise/device/enqueue.hpp"

namespace reprise::bench {

namespace {

constexpr int producer_warm_ups = 3;  // looked at, and not measured
constexpr int lead_copies = 32;  // a millisecond: the card has idled while records were looked at

// The ways, in the order in which they are called.
enum producing : std::size_t { no_point, one_point, all_points, one_copy, all_copies };
constexpr std::size_t producing_ways = 5;

class producer_rounds {
 public:
  producer_rounds(pool& memory, stream_ref stream, void* native_stream,
                  const producer_options& options)
      : stream_{stream},
        timer_{stream, native_stream},
        options_{options},
        source_{memory, stream, static_cast<std::size_t>(all()) * options.bytes},
        one_{source_, 1, options.bytes, block_use::marks},
        all_{source_, all(), options.bytes, block_use::marks},
        one_copied_{source_, 1, options.bytes, block_use::copies},
        all_copied_{source_, all(), options.bytes, block_use::copies},
        lead_from_{memory, options.lead_bytes, stream},
        lead_to_{memory, options.lead_bytes, stream} {
    fill(stream, write{lead_from_}, std::uint8_t{1});
    runs_[no_point].emplace("no point", stream, one_.marked());
    runs_[one_point].emplace("one point", stream, one_.marked(), in_line(1));
    runs_[all_points].emplace(fmt::format("{} points", all()), stream, all_.marked(),
                              in_line(static_cast<std::size_t>(all())));
    runs_[one_copy].emplace("one copy", stream, one_copied_.marked());
    runs_[all_copies].emplace(fmt::format("{} copies", all()), stream, all_copied_.marked());
  }

  producer_rates run(const progress& tell) {
    for (int i = 0; i < producer_warm_ups; ++i) check();
    for (auto& one : runs_) one->begin_measuring();
    const std::string what = fmt::format("producer of {} KiB", options_.bytes >> 10);
    const auto repeats = static_cast<std::size_t>(options_.repeats);
    for (std::size_t i = 0; i < repeats; ++i) {
      if (i % 10 == 0) tell(what, i, repeats);
      for (std::size_t way = 0; way < producing_ways; ++way) measure((way + i) % producing_ways);
    }
    tell(what, repeats, repeats);
    check();
    return report();
  }

 private:
  int all() const { return options_.more_points + 1; }

  monitor_options in_line(std::size_t points) const {
    const std::size_t step = points * options_.bytes;
    monitor_options how;
    how.ring_bytes = how.staging_bytes = 2 * step;
    how.slots = 2 * points;
    how.flights = 4;
    how.most_points = points;
    how.most_runs = 64;
    how.thread = false;
    how.in_line = true;
    return how;
  }

  void check() {
    for (auto& one : runs_) one->check();
  }

  void measure(std::size_t way) {
    watched_run& one = *runs_[way];
    for (int i = 0; i < lead_copies; ++i) {
      copy(stream_, read<std::uint8_t>{lead_from_.all()}, write<std::uint8_t>{lead_to_.all()});
    }
    timer_.start();
    one.call();
    us_[way].push_back(timer_.stop());
    one.settle();
  }

  // What each of the further nodes takes, from neighbours in time.
  spread of_a_node(producing all, producing one) const {
    std::vector<double> us;
    for (std::size_t i = 0; i < us_[all].size(); ++i) {
      us.push_back((us_[all][i] - us_[one][i]) / options_.more_points);
    }
    return spread_of(std::move(us));
  }

  producer_rates report() {
    const bool is_gpu = stream_.device().bodies() == device_kind::cuda;
    producer_rates made;
    made.bytes = options_.bytes;
    made.more_points = options_.more_points;
    made.node.what = fmt::format("{} KiB", options_.bytes >> 10);
    made.node.bytes = 2 * options_.bytes;
    made.node.us = of_a_node(all_points, one_point);
    made.node.floor = "a copy within the device";
    made.node.floor_us = of_a_node(all_copies, one_copy);
    made.node.is_judged = is_gpu;
    if (options_.bytes == small_producer_bytes) {
      made.node.most_us = small_producer_limit_us;
    } else {
      made.node.least_share = large_producer_limit_share;
    }
    made.first = {fmt::format("a step with one point of {} KiB", options_.bytes >> 10),
                  "the step with none", spread_of(us_[one_point]), spread_of(us_[no_point]),
                  std::nullopt};
    for (auto& one : runs_) made.runs.push_back(one->finish());
    return made;
  }

  stream_ref stream_;
  step_timer timer_;
  producer_options options_;
  block_source source_;
  block_step one_;
  block_step all_;
  block_step one_copied_;
  block_step all_copied_;
  buffer<std::uint8_t> lead_from_;
  buffer<std::uint8_t> lead_to_;
  std::array<std::optional<watched_run>, producing_ways> runs_;
  std::array<std::vector<double>, producing_ways> us_;
};

}  // namespace

std::string producer_rates::failure() const {
  for (const watched_counts& one : runs) {
    if (std::string found = one.failure(); !found.empty()) return found;
  }
  return {};
}

producer_rates measure_producer(pool& memory, stream_ref stream, void* native_stream,
                                const producer_options& options, const progress& tell) {
  producer_rates found = producer_rounds{memory, stream, native_stream, options}.run(tell);
  stream.synchronize();
  return found;
}

}  // namespace reprise::bench
