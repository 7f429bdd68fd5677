#include "bench/toggle/switched_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "reprise/base/clock.hpp"

namespace reprise::bench {

namespace {

constexpr std::size_t steps_of_room = 24;  // between two flushes, so that nobody waits for it

std::string text_of(const std::vector<bool>& on) {
  std::string text;
  for (std::size_t i = 0; i < on.size();) {
    if (!on[i]) {
      ++i;
      continue;
    }
    std::size_t last = i;
    while (last + 1 < on.size() && on[last + 1]) ++last;
    text += fmt::format("{}{}-{}", text.empty() ? "resid_pre:" : "+", i, last);
    i = last + 1;
  }
  return text.empty() ? "none" : text;
}

monitor_options room_for(std::size_t points, std::size_t residual_bytes, toggle_mode mode) {
  monitor_options how;
  how.ring_bytes = steps_of_room * points * residual_bytes;
  how.slots = steps_of_room * points;
  how.flights = steps_of_room;
  how.staging_bytes = 4 * points * residual_bytes;
  how.most_points = points;
  how.most_runs = 64;
  how.switch_by = mode;
  return how;
}

std::uint64_t driver_calls_of(const toggle_counts& counts) {
  return counts.enable_calls + counts.copies + counts.variants_made + counts.repairs;
}

}  // namespace

layer_set::layer_set(std::vector<bool> of)
    : on{std::move(of)},
      count{static_cast<std::size_t>(std::ranges::count(on, true))},
      points{text_of(on)} {}

// Written by the thread that drains; a flush lies between that and whoever reads.
struct switched_run::seen_points {
  std::vector<std::uint64_t> by_layer;
  std::uint64_t seen = 0;
  std::uint64_t compared = 0;
  std::uint64_t wrong = 0;
  std::atomic<bool> compares{false};
};

switched_run::switched_run(std::string what, stream_ref stream, const layered_step& of, int points,
                           std::size_t residual_bytes, toggle_mode mode)
    : stream_{stream},
      of_{of.marked()},
      seen_{std::make_unique<seen_points>()},
      eye_{stream.device(), room_for(static_cast<std::size_t>(points), residual_bytes, mode)},
      cache_{stream.device()},
      set_{std::vector<bool>(static_cast<std::size_t>(points), true)},
      expected_(static_cast<std::size_t>(points)) {
  counts_.what = std::move(what);
  counts_.mode = mode;
  counts_.points = static_cast<std::uint64_t>(points);
  seen_->by_layer.resize(expected_.size());
  eye_.watch({"*", row_mode::all()});
  eye_.deliver_to([this](const tap_record& one) {
    ++seen_->seen;
    const auto layer = static_cast<std::size_t>(one.layer);
    if (layer < seen_->by_layer.size()) ++seen_->by_layer[layer];
    if (!seen_->compares.load()) return;
    ++seen_->compared;
    if (!of_.is_right(one)) ++seen_->wrong;
  });
  cache_.observe(eye_.observer());
}

switched_run::~switched_run() = default;

void switched_run::enable(const layer_set& set) {
  set_ = set;
  eye_.enable(set.points);
}

void switched_run::call() {
  last_ = cache_.run(stream_, *of_.what, {});
  note_call();
}

void switched_run::note_call() {
  ++counts_.calls;
  counts_.expected += set_.count;
  for (std::size_t i = 0; i < expected_.size(); ++i) expected_[i] += set_.on[i] ? 1 : 0;
  if (last_.how == ran::eager) ++counts_.eager;
  if (!measures_) return;
  ++counts_.measured;
  if (last_.how == ran::replayed) ++counts_.replayed;
}

std::optional<double> switched_run::timed_call(std::uint64_t driver_calls) {
  const toggle_counts before = eye_.switch_counts();
  const double began = now_us();
  last_ = cache_.run(stream_, *of_.what, {});
  const double us = now_us() - began;
  note_call();
  const toggle_counts after = eye_.switch_counts();
  const std::uint64_t repairs = after.repairs - before.repairs;
  counts_.driver_calls += driver_calls_of(after) - driver_calls_of(before);
  counts_.driver_calls_planned += driver_calls + repairs * (1 + set_.on.size() - set_.count);
  if (repairs == 0) return us;
  ++counts_.repaired;
  return std::nullopt;
}

std::optional<double> switched_run::timed_change(const layer_set& set, std::uint64_t driver_calls) {
  set_ = set;
  point_set points = set.points;
  const double began = now_us();
  eye_.enable(std::move(points));
  const double us = now_us() - began;
  const std::optional<double> call_us = timed_call(driver_calls);
  return call_us ? std::optional{us + *call_us} : std::nullopt;
}

void switched_run::check() {
  settle();
  seen_->compares = true;
  call();
  counts_.equal = of_.has_right_output(stream_, last_) && counts_.equal;
  settle();
  seen_->compares = false;
  counts_.compared_expected += set_.count;
}

switched_counts switched_run::finish() {
  counts_.switched = eye_.switch_counts();
  settle();
  const tap_counts all = eye_.counts();
  counts_.planned = all.planned;
  counts_.published = all.published;
  counts_.lost = all.lost;
  counts_.dropped = all.dropped;
  counts_.waits = all.reserve_waits;
  counts_.seen = seen_->seen;
  counts_.compared = seen_->compared;
  counts_.wrong = seen_->wrong;
  counts_.misplaced = 0;
  for (std::size_t i = 0; i < expected_.size(); ++i) {
    if (seen_->by_layer[i] != expected_[i]) ++counts_.misplaced;
  }
  return counts_;
}

std::string switched_counts::failure() const {
  if (eager != 0 || replayed != measured) {
    return fmt::format(
        "{}: of {} calls {} ran eagerly, and of {} that were measured {} were replayed; its "
        "figures are of something else, so mend that before reading them",
        what, calls, eager, measured, replayed);
  }
  const bool all_there = planned == expected && published == expected && seen == expected &&
                         misplaced == 0 && lost == 0 && dropped == 0 && waits == 0;
  if (!all_there) {
    return fmt::format(
        "{}: {} calls had {} publications on; {} were planned, {} came, {} were lost, {} dropped "
        "and {} seen, {} points not as often as they were on, and {} waited for room; its figures "
        "are of something else, so mend that before reading them",
        what, calls, expected, planned, published, lost, dropped, seen, misplaced, waits);
  }
  if (wrong != 0 || compared != compared_expected) {
    return fmt::format(
        "{}: of {} records that were looked at, where {} were to be, {} have other bits than what "
        "was marked; report it with the command that showed it",
        what, compared, compared_expected, wrong);
  }
  if (!equal) {
    return fmt::format(
        "{}: the output is not what the step computes; its figures are of other work, so report it "
        "with the command that showed it",
        what);
  }
  if (driver_calls != driver_calls_planned) {
    return fmt::format(
        "{}: the calls that were timed took {} calls of the driver beside their launches, where {} "
        "are meant; report it with the command that showed it",
        what, driver_calls, driver_calls_planned);
  }
  return {};
}

}  // namespace reprise::bench
