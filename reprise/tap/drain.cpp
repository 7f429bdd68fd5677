#include "reprise/tap/drain.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "reprise/base/clock.hpp"
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
      outlets_{options.run_name.empty() ? std::to_string(options.run) : options.run_name},
      own_{device},
      staging_{device, options.staging_bytes},
      rounds_{round{device}, round{device}},
      choice_{options.drain_by} {}

bool drain::pump() {
  if (!turn_.try_lock()) return false;
  const std::lock_guard held{turn_, std::adopt_lock};
  return pump_alone();
}

bool drain::pump_alone() {
  if (failed()) return false;
  round& made = rounds_[next_];
  round& before = rounds_[1 - next_];
  try {
    choose(made, before);
    if (REPRISE_MUTANT(room_is_free_before_the_copy)) give_back(made);
    copy_spans(made);
    if (!made.is_under_way() && !before.is_under_way()) return false;
    if (before.is_under_way()) end(before);
    if (made.is_under_way()) next_ = 1 - next_;
    return true;
  } catch (const std::exception&) {
    fail(std::current_exception());
    return false;
  }
}

void drain::give_back(const round& done) {
  const std::lock_guard held{guard_};
  flights_.give_back(done.flights.size());
  counts_.spans += done.spans.size();
  counts_.spans_by_kernel += done.way == drain_way::kernel ? done.spans.size() : 0;
}

// The oldest flights that are over and that the round before does not have, as many as half of the
// staging holds; one that is larger has all of it, alone. What lies together in the ring and was
// found is one span.
void drain::choose(round& made, const round& before) {
  made.begin();
  if (before.has_all) return;
  const std::size_t half = staging_.size() / 2 / payload_alignment * payload_alignment;
  std::size_t staged = next_ * half;
  std::size_t end = staged + half;

  const std::lock_guard held{guard_};
  flights_.look();
  for (std::size_t i = before.flights.size(); i < flights_.count(); ++i) {
    flight& one = flights_.at(i);
    if (!flights_.is_over(one)) break;
    const bool moves = one.is == flight::phase::launched && !one.is_direct();
    if (moves && one.plan.bytes() > half && i == 0) {
      made.has_all = true;
      staged = 0;
      end = staging_.size();
    }
    if (moves && staged + one.plan.bytes() > end) break;
    made.flights.push_back(&one);
    if (moves) staged = add_spans(made, one, staged);
  }
}

std::size_t drain::add_spans(round& made, flight& one, std::size_t staged) {
  const auto publications = one.plan.publications();
  for (std::size_t i = 0; i < publications.size(); ++i) {
    if (one.state[i] != found::whole) continue;
    const std::uint64_t position = publications[i].position;
    const std::uint64_t bytes =
        padded(one.bytes[i] + (one.plan.marked() ? marker_bytes : std::size_t{0}));
    const bool goes_on =
        !made.spans.empty() && made.spans.back().position + made.spans.back().bytes == position;
    if (!goes_on) made.spans.push_back({position, 0, staged});
    made.spans.back().bytes += bytes;
    made.pieces.push_back({&one, i, staged});
    made.bytes += bytes;
    staged += bytes;
  }
  return staged;
}

void drain::move(site at, drain_way way, std::uint64_t from, std::size_t to, std::uint64_t bytes) {
  const read<std::uint8_t> source{ring_->payload().subview(from, bytes)};
  const write<std::uint8_t> target{staging_.all().subview(to, bytes)};
  if (way == drain_way::kernel) {
    launch(at, move_span, source, target);
  } else {
    copy(at, source, target);
  }
}

void drain::copy_spans(round& made) {
  if (made.spans.empty()) return;
  made.way = choice_.next(made.bytes);
  made.began_us = now_us();
  const site at{own_};
  const std::uint64_t capacity = ring_->payload().size();
  for (const span& one : made.spans) {
    const std::uint64_t offset = one.position % capacity;
    const std::uint64_t first = std::min(one.bytes, capacity - offset);
    move(at, made.way, offset, one.staged, first);
    if (first == one.bytes || REPRISE_MUTANT(drained_span_is_not_split_at_the_end)) continue;
    move(at, made.way, 0, one.staged + first, one.bytes - first);
  }
  made.copied.record(own_);
}

// The room is free, then its records are handed over.
void drain::end(round& done) {
  if (!done.spans.empty()) wait_for(done);
  if (!REPRISE_MUTANT(room_is_free_before_the_copy)) give_back(done);
  deliver(done);
  done.begin();
}

// How long the round took is known where the host saw its end, on devices that take real time.
void drain::wait_for(round& done) {
  const bool is_seen = !done.copied.finished();
  if (!REPRISE_MUTANT(records_are_cut_before_their_copy_is_done)) done.copied.synchronize();
  const double now = now_us();
  if (is_seen && device_.api().threads() == nullptr) {
    choice_.took(done.way, done.bytes, now - std::max(done.began_us, last_copied_us_));
  }
  last_copied_us_ = now;
}

void drain::deliver(const round& done) {
  records_.clear();
  shapes_.clear();
  std::size_t next = 0;
  std::uint64_t drained = 0;
  for (flight* const one : done.flights) {
    if (one->is_direct()) add_records(*one, 0, nullptr);
    for (; next < done.pieces.size() && done.pieces[next].of == one; ++next) {
      const piece& p = done.pieces[next];
      const auto* const payload = reinterpret_cast<const std::byte*>(staging_.data()) + p.staged;
      drained += one->plan.publications()[p.publication].reserved;
      if (one->plan.marked() && !marker_agrees(*one, p.publication, payload)) {
        mislabelled(*one, p.publication);
        continue;
      }
      add_records(*one, p.publication, payload + (one->plan.marked() ? marker_bytes : 0));
    }
  }
  std::uint64_t row_bytes = 0;
  for (std::size_t i = 0; i < records_.size(); ++i) {
    records_[i].shape = {shapes_.data() + 2 * i, 2};
    row_bytes += records_[i].bytes.size();
  }
  outlets_.deliver(records_);
  const std::lock_guard held{guard_};
  counts_.records += records_.size();
  counts_.record_bytes += row_bytes;
  counts_.drained_bytes += drained;
  flights_.pop(done.flights.size());
}

bool drain::marker_agrees(const flight& of, std::size_t i, const std::byte* payload) {
  std::uint64_t marker[2];
  std::memcpy(marker, payload, sizeof marker);
  const tapped_point& point = of.points[of.plan.publications()[i].producer];
  if (REPRISE_MUTANT(markers_are_not_compared)) return true;
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
    made.shard = point.shard.index;
    made.shards = point.shard.count;
    made.shard_axis = point.shard.axis;
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
      const std::lock_guard held{turn_};  // a round of somebody else ends first
      moved = pump_alone();
      const std::lock_guard looked{guard_};
      if (flights_.count() == 0 || flights_.at(0).number >= number) return;
    }
    if (!moved && REPRISE_MUTANT(flush_waits_for_no_stream)) return;
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
