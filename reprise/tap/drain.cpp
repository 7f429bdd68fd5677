#include "reprise/tap/drain.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/device/enqueue.hpp"
#include "reprise/device/host_thread.hpp"
#include "reprise/kernel/launch.hpp"
#include "reprise/tap/move_span.hpp"

namespace reprise {

drain::drain(device_ref device, const monitor_options& options,
             std::shared_ptr<const ring_memory> ring, flights& all, mutex& guard,
             tap_counts& counts)
    : device_{device},
      options_{options},
      ring_{std::move(ring)},
      flights_{all},
      guard_{guard},
      counts_{counts},
      own_{device},
      staging_{device, options.staging_bytes} {}

void drain::send_to(std::unique_ptr<record_sink> sink) {
  const std::lock_guard held{round_};
  sinks_.add(std::move(sink), std::to_string(options_.run));
}

bool drain::pump() {
  if (!round_.try_lock()) return false;
  const std::lock_guard held{round_, std::adopt_lock};
  return pump_alone();
}

bool drain::pump_alone() {
  if (failed()) return false;
  try {
    const std::size_t taken = choose();
    if (taken == 0) return false;
    copy_spans();
    {
      const std::lock_guard held{guard_};
      flights_.give_back(taken);
      counts_.spans += spans_.size();
    }
    deliver(taken);
    return true;
  } catch (const std::exception&) {
    fail(std::current_exception());
    return false;
  }
}

// The oldest flights that are over, as many as the staging holds, which any one of them fits; what
// of them lies together in the ring and was found is one span.
std::size_t drain::choose() {
  pieces_.clear();
  spans_.clear();
  const std::lock_guard held{guard_};
  flights_.look();
  std::size_t taken = 0;
  std::size_t staged = 0;
  while (taken < flights_.count()) {
    flight& one = flights_.at(taken);
    if (!flights_.is_over(one)) break;
    const bool moves = one.is == flight::phase::launched && !one.is_direct();
    if (moves && staged + one.plan.bytes() > staging_.size()) break;
    const auto publications = one.plan.publications();
    for (std::size_t i = 0; moves && i < publications.size(); ++i) {
      if (one.state[i] != found::whole) continue;
      const planned_publication& planned = publications[i];
      const std::uint64_t bytes =
          padded(one.bytes[i] + (one.plan.marked() ? marker_bytes : std::size_t{0}));
      const bool goes_on =
          !spans_.empty() && spans_.back().position + spans_.back().bytes == planned.position;
      if (!goes_on) spans_.push_back({planned.position, 0, staged});
      spans_.back().bytes += bytes;
      pieces_.push_back({taken, i, staged});
      staged += bytes;
    }
    ++taken;
  }
  return taken;
}

void drain::move(site at, std::uint64_t from, std::size_t to, std::uint64_t bytes) {
  const read<std::uint8_t> source{ring_->payload().subview(from, bytes)};
  const write<std::uint8_t> target{staging_.all().subview(to, bytes)};
  if (options_.drain_by_kernel) {
    launch(at, move_span, source, target);
  } else {
    copy(at, source, target);
  }
}

void drain::copy_spans() {
  if (spans_.empty()) return;
  const site at{own_};
  const std::uint64_t capacity = ring_->payload().size();
  for (const span& one : spans_) {
    const std::uint64_t offset = one.position % capacity;
    const std::uint64_t first = std::min(one.bytes, capacity - offset);
    move(at, offset, one.staged, first);
    if (first != one.bytes) move(at, 0, one.staged + first, one.bytes - first);
  }
  own_.synchronize();
}

void drain::deliver(std::size_t taken) {
  records_.clear();
  shapes_.clear();
  std::size_t next = 0;
  std::uint64_t drained = 0;
  for (std::size_t i = 0; i < taken; ++i) {
    flight& one = [&]() -> flight& {
      const std::lock_guard held{guard_};
      return flights_.at(i);
    }();
    if (one.is_direct()) add_records(one, 0, nullptr);
    for (; next < pieces_.size() && pieces_[next].flight == i; ++next) {
      const piece& p = pieces_[next];
      const auto* const payload = reinterpret_cast<const std::byte*>(staging_.data()) + p.staged;
      drained += one.plan.publications()[p.publication].reserved;
      if (one.plan.marked() && !marker_agrees(one, p.publication, payload)) {
        mislabelled(one, p.publication);
        continue;
      }
      add_records(one, p.publication, payload + (one.plan.marked() ? marker_bytes : 0));
    }
  }
  std::uint64_t row_bytes = 0;
  for (std::size_t i = 0; i < records_.size(); ++i) {
    records_[i].shape = {shapes_.data() + 2 * i, 2};
    row_bytes += records_[i].bytes.size();
  }
  sinks_.write(records_);
  const std::lock_guard held{guard_};
  counts_.records += records_.size();
  counts_.record_bytes += row_bytes;
  counts_.drained_bytes += drained;
  counts_.sink_failures = sinks_.failures();
  counts_.sink_lost = sinks_.lost();
  flights_.pop(taken);
}

bool drain::marker_agrees(const flight& of, std::size_t i, const std::byte* payload) {
  std::uint64_t marker[2];
  std::memcpy(marker, payload, sizeof marker);
  const tapped_point& point = of.points[of.plan.publications()[i].producer];
  return marker[0] == static_cast<std::uint64_t>(of.replay) && marker[1] == point.id;
}

void drain::mislabelled(const flight& of, std::size_t i) {
  const std::lock_guard held{guard_};
  point_counts& point = counts_.points[of.points[of.plan.publications()[i].producer].id];
  ++counts_.mislabelled;
  ++counts_.lost;
  ++point.lost;
  --counts_.published;
  --point.published;
}

// One for each request whose rows are there: as many of them as were published.
void drain::add_records(flight& of, std::size_t i, const std::byte* payload) {
  if (i >= of.plan.publications().size()) return;
  const planned_publication& planned = of.plan.publications()[i];
  const tapped_point& point = of.points[planned.producer];
  if (point.row_bytes == 0) return;
  auto left = static_cast<std::int64_t>(of.bytes[i] / point.row_bytes);
  std::int64_t packed = 0;
  for (const row_piece& those : of.plan.pieces_of(planned)) {
    const std::int64_t rows = std::min(those.rows, left);
    if (rows == 0) break;
    // A tensor that went straight to the host is there as a whole.
    const std::byte* const from =
        of.is_direct()
            ? of.direct.data() + static_cast<std::uint64_t>(those.source_row) * point.row_bytes
            : payload + static_cast<std::uint64_t>(packed) * point.row_bytes;
    tap_record made;
    made.run = options_.run;
    made.step = of.step;
    made.replay = of.replay;
    made.kind = point.kind;
    made.layer = point.layer;
    made.request = those.request;
    made.first_row = those.first_token;
    made.rows = rows;
    made.place = those.place;
    made.type = point.type;
    made.bytes = {from, static_cast<std::uint64_t>(rows) * point.row_bytes};
    records_.push_back(made);
    shapes_.push_back(rows);
    shapes_.push_back(point.width);
    left -= rows;
    packed += rows;
  }
}

void drain::deliver_up_to(std::uint64_t number) {
  for (;;) {
    raise_failure();
    bool moved = false;
    {
      const std::lock_guard held{round_};  // a round of somebody else ends first
      moved = pump_alone();
      const std::lock_guard looked{guard_};
      if (flights_.count() == 0 || flights_.at(0).number >= number) return;
    }
    if (!moved) pass_oldest();
  }
}

// Nothing of the oldest came: its stream is asked whether it has passed it.
void drain::pass_oldest() {
  {
    const std::lock_guard held{guard_};
    flights_.probe_oldest();
  }
  pause(device_);
}

void drain::flush_sinks() {
  const std::lock_guard held{round_};
  sinks_.flush();
  const std::lock_guard counted{guard_};
  counts_.sink_failures = sinks_.failures();
}

void drain::close_sinks() {
  const std::lock_guard held{round_};
  sinks_.close();
}

void drain::fail(std::exception_ptr why) {
  const std::lock_guard held{guard_};
  if (!failed_) failed_ = std::move(why);
}

bool drain::failed() {
  const std::lock_guard held{guard_};
  return failed_ != nullptr;
}

void drain::raise_failure() {
  const std::lock_guard held{guard_};
  if (failed_) std::rethrow_exception(failed_);
}

}  // namespace reprise
