#include "bench/tap/drain_rates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <optional>
#include <utility>

#include "bench/tap/block_step.hpp"
#include "reprise/base/clock.hpp"
#include "reprise/device/enqueue.hpp"

namespace reprise::bench {

namespace {

constexpr int drain_warm_ups = 2;  // looked at, and not measured
constexpr std::size_t most_step_records = 128;
constexpr std::size_t most_step_bytes = std::size_t{32} << 20;
constexpr std::size_t drain_staging = std::size_t{64} << 20;  // the default of a monitor

// As many records as divide the whole.
std::size_t records_of_a_step(const drain_options& options) {
  const std::size_t all = options.bytes / options.record_bytes;
  std::size_t points = std::min(
      {all, most_step_records, std::max<std::size_t>(1, most_step_bytes / options.record_bytes)});
  while (all % points != 0) --points;
  return points;
}

struct draining {
  draining(std::string what, stream_ref stream, const block_step& of,
           const monitor_options& watched, sink_use sink)
      : run{std::move(what), stream, of.marked(), watched, sink},
        is_alone{sink == sink_use::none} {}

  watched_run run;
  bool is_alone;  // behind a sink's queue it is as fast as the host copies
  std::vector<double> us;
};

class drain_rounds {
 public:
  drain_rounds(pool& memory, stream_ref stream, const drain_options& options)
      : stream_{stream},
        options_{options},
        points_{records_of_a_step(options)},
        steps_{options.bytes / options.record_bytes / points_},
        source_{memory, stream, points_ * options.record_bytes},
        step_{source_, static_cast<int>(points_), options.record_bytes, block_use::marks},
        from_{memory, options.bytes, stream},
        to_{stream.device(), options.bytes} {
    fill(stream, write{from_}, std::uint8_t{1});
    for (const bool by_kernel : {false, true}) {
      for (const sink_use sink : {sink_use::none, sink_use::counts}) {
        const std::string what =
            fmt::format("by {}, {}", by_kernel ? "kernel" : "copy engine",
                        sink == sink_use::none ? "no sink" : "a sink that counts");
        ways_.emplace_back(what, stream, step_, room(by_kernel), sink);
      }
    }
  }

  drain_rates run(const progress& tell) {
    for (int i = 0; i < drain_warm_ups; ++i) {
      for (draining& one : ways_) one.run.check();
    }
    for (draining& one : ways_) one.run.begin_measuring();
    const std::string what = fmt::format("drain of {} KiB", options_.record_bytes >> 10);
    const auto repeats = static_cast<std::size_t>(options_.repeats);
    for (std::size_t i = 0; i < repeats + 1; ++i) {
      tell(what, i, repeats + 1);
      round(i);
      if (i == 0) forget();  // memory is touched for the first time
    }
    for (draining& one : ways_) one.run.check();
    return report();
  }

 private:
  monitor_options room(bool by_kernel) const {
    const std::size_t step = points_ * options_.record_bytes;
    monitor_options how;
    how.ring_bytes = options_.bytes;
    how.slots = points_ * steps_;
    how.flights = steps_;
    how.staging_bytes = std::max(2 * step, std::min(options_.bytes, drain_staging));
    how.most_points = points_;
    how.most_runs = 64;
    how.thread = false;
    how.drain_by = by_kernel ? drain_way::kernel : drain_way::copy_engine;
    return how;
  }

  void round(std::size_t number) {
    for (std::size_t i = 0; i < ways_.size(); ++i) {
      measure(*std::next(ways_.begin(), static_cast<std::ptrdiff_t>((number + i) % ways_.size())));
    }
    at_once_.push_back(copied_in(options_.bytes));
    one_by_one_.push_back(copied_in(options_.record_bytes));
  }

  void measure(draining& one) {
    for (std::size_t i = 0; i < steps_; ++i) one.run.call();
    stream_.synchronize();
    const double began = now_us();
    one.run.settle();
    one.us.push_back(now_us() - began);
  }

  // All bytes, in pieces of so many, one behind the other.
  double copied_in(std::size_t piece) {
    stream_.synchronize();
    const double began = now_us();
    for (std::size_t at = 0; at < options_.bytes; at += piece) {
      copy(stream_, read<std::uint8_t>{from_.all().subview(at, piece)},
           write<std::uint8_t>{to_.all().subview(at, piece)});
    }
    stream_.synchronize();
    return now_us() - began;
  }

  void forget() {
    for (draining& one : ways_) one.us.clear();
    at_once_.clear();
    one_by_one_.clear();
  }

  rate_figure figure_of(std::string what, const std::vector<double>& us) const {
    rate_figure made;
    made.what = std::move(what);
    made.bytes = options_.bytes;
    made.us = spread_of(us);
    made.floor = "one copy to pinned memory";
    made.floor_us = spread_of(at_once_);
    made.is_judged = stream_.device().bodies() == device_kind::cuda;
    return made;
  }

  drain_rates report() {
    drain_rates made;
    made.record_bytes = options_.record_bytes;
    made.records = points_ * steps_;
    for (draining& one : ways_) {
      rate_figure figure = figure_of(one.run.what(), one.us);
      if (one.is_alone && options_.record_bytes == small_record_bytes) {
        figure.least_gb_s = small_drain_limit_gb_s;
      }
      if (one.is_alone && options_.record_bytes == large_record_bytes) {
        figure.least_share = large_drain_limit_share;
      }
      made.figures.push_back(std::move(figure));
      made.runs.push_back(one.run.finish());
    }
    made.figures.push_back(figure_of("copied one by one", one_by_one_));
    return made;
  }

  stream_ref stream_;
  drain_options options_;
  std::size_t points_;
  std::size_t steps_;
  block_source source_;
  block_step step_;
  buffer<std::uint8_t> from_;
  pinned<std::uint8_t> to_;
  std::list<draining> ways_;
  std::vector<double> at_once_;
  std::vector<double> one_by_one_;
};

}  // namespace

std::string drain_rates::failure() const {
  for (const watched_counts& one : runs) {
    if (std::string found = one.failure(); !found.empty()) return found;
  }
  return {};
}

drain_rates measure_drain(pool& memory, stream_ref stream, const drain_options& options,
                          const progress& tell) {
  drain_rates found = drain_rounds{memory, stream, options}.run(tell);
  stream.synchronize();
  return found;
}

}  // namespace reprise::bench
