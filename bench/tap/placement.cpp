#include "bench/tap/placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <utility>

#include "bench/tap/step_timer.hpp"
#include "reprise/base/clock.hpp"

namespace reprise::bench {

namespace {

constexpr int placement_warm_ups = 3;  // looked at, and not measured
constexpr std::size_t kib = 1024;

// Room for all that is called between two flushes, so that nobody ever waits for it.
monitor_options roomy(const layered_shape& shape) {
  const std::size_t step = static_cast<std::size_t>(shape.layers) * shape.residual_bytes;
  const auto layers = static_cast<std::size_t>(shape.layers);
  monitor_options how;
  how.ring_bytes = 2 * placement_in_a_row * step;
  how.slots = 2 * placement_in_a_row * layers;
  how.flights = 2 * placement_in_a_row;
  how.staging_bytes = 4 * step;
  how.most_points = layers;
  how.most_runs = 64;
  return how;
}

monitor_options in_line(const layered_shape& shape) {
  monitor_options how = roomy(shape);
  how.in_line = true;
  return how;
}

monitor_options without_thread(const layered_shape& shape) {
  monitor_options how = roomy(shape);
  how.thread = false;
  return how;
}

// Two steps fit.
monitor_options dropping(const layered_shape& shape) {
  monitor_options how = roomy(shape);
  how.ring_bytes /= placement_in_a_row;
  how.slots /= placement_in_a_row;
  how.drop_when_full = true;
  return how;
}

struct placed {
  placed(std::string what, stream_ref stream, const layered_step& of,
         std::optional<monitor_options> watched = {}, sink_use sink = sink_use::counts)
      : run{std::move(what), stream, of.marked(), watched, sink} {}

  watched_run run;
  std::vector<double> device_us;
  std::vector<double> idle_us;
  std::vector<double> host_us;
  std::vector<double> row_us;  // of one of many in a row
};

call_figure figure_of(const std::string& what, const char* floor, const std::vector<double>& us,
                      const std::vector<double>& floor_us, std::optional<double> limit = {},
                      bool judged = true) {
  return {what, floor, spread_of(us), spread_of(floor_us), limit, judged, {}};
}

std::vector<double> differences(const std::vector<double>& of, const std::vector<double>& less) {
  std::vector<double> all;
  for (std::size_t i = 0; i < of.size(); ++i) all.push_back(of[i] - less[i]);
  return all;
}

class placement_rounds {
 public:
  placement_rounds(pool& memory, stream_ref stream, void* native_stream,
                   const layer_weights& weights, const placement_options& options)
      : stream_{stream},
        timer_{stream, native_stream},
        options_{options},
        judged_{stream.device().bodies() == device_kind::cuda},
        step_{memory, stream, weights, options.shape},
        lead_{"bare, ahead", stream, step_.marked()} {
    const layered_shape& shape = options.shape;
    bare_ = &ways_.emplace_back("bare", stream, step_);
    ways_.emplace_back("all on", stream, step_, roomy(shape));
    ways_.emplace_back("all on, in line", stream, step_, in_line(shape));
    if (options.pairs == 0) return;
    ways_.emplace_back("all on, no drain thread", stream, step_, without_thread(shape));
    ways_.emplace_back("all on, full ring", stream, step_, dropping(shape), sink_use::sleeps);
    none_.emplace("none on", stream, step_, roomy(shape));
    paired_.emplace("bare, in pairs", stream, step_);
  }

  placement run(const progress& tell) {
    warm_up();
    const std::string what = fmt::format("{} KiB, {} buffers", options_.shape.residual_bytes / kib,
                                         options_.shape.buffers);
    const auto repeats = static_cast<std::size_t>(options_.repeats);
    const auto pairs = static_cast<std::size_t>(options_.pairs);
    for (std::size_t i = 0; i < repeats; ++i) {
      if (i % 10 == 0) tell(what, i, repeats + pairs);
      round(i);
    }
    for (std::size_t i = 0; i < pairs; ++i) {
      if (i % 50 == 0) tell(what, repeats + i, repeats + pairs);
      measure(i % 2 == 0 ? *paired_ : *none_);
      measure(i % 2 == 0 ? *none_ : *paired_);
    }
    tell(what, repeats + pairs, repeats + pairs);
    for (placed& one : ways_) one.run.check();
    if (none_) none_->run.check();
    return report();
  }

 private:
  void warm_up() {
    for (int i = 0; i < placement_warm_ups; ++i) {
      lead_.check();
      for (placed& one : ways_) one.run.check();
      if (!none_) continue;
      none_->run.check();
      paired_->run.check();
    }
    for (placed& one : ways_) one.run.fill();
    if (none_) none_->run.turn_off();
    for (int i = 0; none_ && i < placement_warm_ups; ++i) none_->run.check();
    lead_.begin_measuring();
    for (placed& one : ways_) one.run.begin_measuring();
    if (!none_) return;
    none_->run.begin_measuring();
    paired_->run.begin_measuring();
  }

  // Another one begins each time, so that nobody always follows the same neighbour.
  void round(std::size_t number) {
    for (std::size_t i = 0; i < ways_.size(); ++i) {
      placed& one =
          *std::next(ways_.begin(), static_cast<std::ptrdiff_t>((number + i) % ways_.size()));
      measure(one);
      const bool goes_on = options_.pairs != 0 && (&one == bare_ || one.run.what() == "all on");
      if (goes_on) measure_row(one);
    }
  }

  // What is drained is drained before the next one begins.
  void measure(placed& one) {
    stream_.synchronize();
    timer_.start();
    const double began = now_us();
    one.run.call();
    one.host_us.push_back(now_us() - began);
    one.idle_us.push_back(timer_.stop());
    one.run.settle();

    lead_.call();
    timer_.start();
    one.run.call();
    one.device_us.push_back(timer_.stop());
    one.run.settle();
  }

  void measure_row(placed& one) {
    lead_.call();
    timer_.start();
    for (int i = 0; i < placement_in_a_row; ++i) one.run.call();
    one.row_us.push_back(timer_.stop() / placement_in_a_row);
    one.run.settle();
  }

  placement_row row_of(const placed& one, const placed& floor, std::optional<double> limit) const {
    const auto of = [&](const std::vector<double> placed::*us, std::optional<double> most) {
      return figure_of(one.run.what(), "bare", one.*us, floor.*us, most, judged_);
    };
    return {of(&placed::device_us, limit),
            of(&placed::idle_us, limit),
            of(&placed::host_us, std::nullopt),
            {},
            {}};
  }

  placement report() {
    placement made;
    made.shape = options_.shape;
    for (const placed& one : ways_) {
      if (&one == bare_) continue;
      std::optional<double> limit;
      if (one.run.what() == "all on") limit = all_on_limit_us(options_.shape);
      placement_row row = row_of(one, *bare_, limit);
      // A step that is dropped is as long as an unwatched one may be.
      if (one.run.what() == "all on, full ring") {
        for (call_figure* const figure : {&row.device, &*row.from_idle}) {
          figure->limit_us = figure->floor_us.p90 - figure->floor_us.median;
        }
      }
      made.rows.push_back(std::move(row));
      if (one.row_us.empty()) continue;
      placement_row in_a_row;
      in_a_row.device = figure_of(fmt::format("all on, {} in a row", placement_in_a_row),
                                  "bare, as many in a row", one.row_us, bare_->row_us);
      made.rows.push_back(std::move(in_a_row));
    }
    if (none_) {
      placement_row row = row_of(*none_, *paired_, none_on_limit_us);
      row.device_adds = median_interval_of(differences(none_->device_us, paired_->device_us));
      row.from_idle_adds = median_interval_of(differences(none_->idle_us, paired_->idle_us));
      row.device.paired_us = row.device_adds->median;
      row.from_idle->paired_us = row.from_idle_adds->median;
      made.rows.push_back(std::move(row));
    }
    made.runs.push_back(lead_.finish());
    for (placed& one : ways_) made.runs.push_back(one.run.finish());
    if (none_) {
      made.runs.push_back(none_->run.finish());
      made.runs.push_back(paired_->run.finish());
    }
    return made;
  }

  stream_ref stream_;
  step_timer timer_;
  placement_options options_;
  bool judged_;
  layered_step step_;
  watched_run lead_;
  std::list<placed> ways_;
  placed* bare_ = nullptr;
  std::optional<placed> none_;
  std::optional<placed> paired_;
};

}  // namespace

std::optional<double> all_on_limit_us(const layered_shape& shape) {
  const bool as_meant = shape.layers == 36 && shape.weight_bytes >= std::size_t{32} << 20 &&
                        shape.buffers == placement_main_buffers;
  if (!as_meant) return std::nullopt;
  switch (shape.residual_bytes / kib) {
    case 8: return 7.0;
    case 64: return 10.0;
    case 256: return 13.0;
    default: return std::nullopt;
  }
}

std::string placement::failure() const {
  for (const watched_counts& one : runs) {
    if (std::string found = one.failure(); !found.empty()) return found;
  }
  return {};
}

placement measure_placement(pool& memory, stream_ref stream, void* native_stream,
                            const layer_weights& weights, const placement_options& options,
                            const progress& tell) {
  placement found = placement_rounds{memory, stream, native_stream, weights, options}.run(tell);
  stream.synchronize();
  return found;
}

}  // namespace reprise::bench
