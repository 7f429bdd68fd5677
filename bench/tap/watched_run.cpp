#include "bench/tap/watched_run.hpp"

#include <fmt/format.h>

#include <utility>

namespace reprise::bench {

namespace {

constexpr int most_filling_calls = 20'000;
constexpr int dropped_in_a_row = 32;  // after which nobody makes room any more

}  // namespace

watched_run::watched_run(std::string what, stream_ref stream, marked_step of,
                         std::optional<monitor_options> watched, sink_use sink)
    : stream_{stream}, of_{std::move(of)}, cache_{stream.device()}, is_on_{watched.has_value()} {
  counts_.what = std::move(what);
  if (!watched) return;
  counts_.points = of_.points;
  counts_.has_sink = sink != sink_use::none;
  counts_.drops = sink == sink_use::sleeps;
  seen_->held = counts_.drops;
  eye_ = std::make_unique<monitor>(stream.device(), *watched);
  eye_->watch({"*", row_mode::all()});
  if (counts_.has_sink) eye_->send_to(checking_sink(stream.device(), seen_, of_.is_right));
  cache_.observe(eye_->observer());
}

watched_run::~watched_run() {
  seen_->let_go();
}

void watched_run::call() {
  last_ = cache_.run(stream_, *of_.what, {});
  ++counts_.calls;
  if (is_on_) ++counts_.on;
  if (last_.how == ran::eager) ++counts_.eager;
  if (!measures_) return;
  ++counts_.measured;
  if (last_.how == ran::replayed) ++counts_.replayed;
}

void watched_run::check() {
  settle();
  const bool compares = is_on_ && counts_.has_sink && !counts_.drops;
  seen_->compares = compares;
  call();
  counts_.equal = of_.has_right_output(stream_, last_) && counts_.equal;
  settle();
  seen_->compares = false;
  if (compares) ++counts_.compared_calls;
}

void watched_run::fill() {
  if (!counts_.drops) return;
  int in_a_row = 0;
  for (int i = 0; i < most_filling_calls; ++i) {
    const std::uint64_t before = eye_->counts().dropped;
    call();
    stream_.synchronize();
    in_a_row = eye_->counts().dropped == before ? 0 : in_a_row + 1;
    if (in_a_row >= dropped_in_a_row && seen_->asleep) return;
  }
}

void watched_run::turn_off() {
  eye_->enable(point_set::none());
  is_on_ = false;
}

void watched_run::settle() {
  if (eye_ && !seen_->held) eye_->flush();
}

watched_counts watched_run::finish() {
  seen_->let_go();
  settle();
  if (!eye_) return counts_;
  const tap_counts all = eye_->counts();
  counts_.planned = all.planned;
  counts_.published = all.published;
  counts_.dropped = all.dropped;
  counts_.lost = all.lost;
  counts_.waits = all.reserve_waits;
  counts_.records = all.records;
  counts_.seen = seen_->records;
  counts_.compared = seen_->compared;
  counts_.wrong = seen_->wrong;
  return counts_;
}

std::string watched_counts::failure() const {
  if (eager != 0 || replayed != measured) {
    return fmt::format(
        "{}: of {} calls {} ran eagerly, and of {} that were measured {} were replayed; its "
        "figures are of something else, so mend that before reading them",
        what, calls, eager, measured, replayed);
  }
  const bool all_there = published == planned && records == planned && lost == 0 && waits == 0 &&
                         (!has_sink || seen == planned);
  const bool as_many =
      planned + dropped == on * points && (drops ? dropped >= measured * points : dropped == 0);
  if (!all_there || !as_many) {
    return fmt::format(
        "{}: {} calls of {} points planned {} publications, of which {} came, {} were lost, {} "
        "records were made and {} seen; {} were dropped and {} waited for room; its figures are of "
        "something else, so mend that before reading them",
        what, on, points, planned, published, lost, records, seen, dropped, waits);
  }
  if (wrong != 0 || compared != compared_calls * points) {
    return fmt::format(
        "{}: of {} records that were looked at, where {} were to be, {} have other bits than what "
        "was marked; report it with the command that showed it",
        what, compared, compared_calls * points, wrong);
  }
  if (!equal) {
    return fmt::format(
        "{}: the output is not what the step computes; its figures are of other work, so report it "
        "with the command that showed it",
        what);
  }
  return {};
}

}  // namespace reprise::bench
