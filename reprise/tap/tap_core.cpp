#include "reprise/tap/tap_core.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/base/fault_points.hpp"
#include "reprise/base/mutant.hpp"

namespace reprise {

namespace {

std::atomic<std::uint64_t> monitors_made{0};
constexpr std::chrono::microseconds drain_nap{200};  // of a thread that found nothing to drain

const monitor_options& sensible(const monitor_options& options) {
  const auto need = [](bool holds, const char* what) {
    if (!holds) throw usage_error{fmt::format("monitor_options: {}", what)};
  };
  need(options.flights != 0, "flights is 0; give it at least 1");
  need(options.most_points != 0 && options.most_points < publication::points,
       "most_points is 0 or over 4095; give it 1 to 4095");
  need(options.ring_bytes <= publication::most_bytes, "ring_bytes is 64 GiB or more; give it less");
  return options;
}

}  // namespace

tap_core::tap_core(device_ref on, const monitor_options& how)
    : device{on},
      options{sensible(how)},
      memory{on, "taps"},
      side{on},
      ring{std::make_shared<ring_memory>(memory, side, options.ring_bytes, options.slots)},
      all{on, options, ring, counted},
      drains{on, options, ring, all, guard, counted},
      begun{on},
      crossing{on},
      id_{++monitors_made} {
  if (options.thread) thread_ = std::make_unique<host_thread>(device, [this] { run_drain(); });
}

void tap_core::watch(std::vector<tap_spec> specs) {
  for (const tap_spec& one : specs) {
    const bool chunks = one.rows.what() == row_mode::kind::chunked;
    if (chunks && (one.rows.parts() < 1 || one.rows.parts() > 64)) {
      throw usage_error{fmt::format("points '{}': chunked into {}; give 1 to 64 chunks",
                                    one.where.text(), one.rows.parts())};
    }
  }
  specs_ = std::move(specs);
  watches_ = std::ranges::any_of(specs_, [](const tap_spec& one) {
    return !one.where.empty() && one.rows.what() != row_mode::kind::none;
  });
  ++version_;
}

void tap_core::enable(point_set enabled) {
  enabled_ = std::move(enabled);
  ++enabled_version_;
}

std::uint64_t tap_core::recorded_as() const {
  const bool may_fire = !enabled_.empty() || gate_ == step_gate::ungated;
  const bool fires = watches_ && may_fire && !stopped();
  if (REPRISE_MUTANT(nothing_enabled_is_recorded_with_producers)) return id_ << 24 | version_;
  return fires ? id_ << 24 | version_ : mark_observer::leaves_nothing;
}

std::uint64_t tap_core::id_of(point where) {
  for (std::size_t i = 0; i < known_.size(); ++i) {
    const known_point& one = known_[i];
    const bool same_part = one.shard == where.shard || REPRISE_MUTANT(shards_are_one_point);
    if (one.layer == where.layer && same_part && one.kind == where.kind) return i;
  }
  if (known_.size() + 1 >= publication::points) {
    throw usage_error{fmt::format("point {}:{}: a monitor knows {} points and no more; watch fewer",
                                  where.kind, where.layer, known_.size())};
  }
  const shard_of& part = where.shard;
  if (part.index < 0 || part.index >= part.count || part.axis < -1) {
    throw usage_error{
        fmt::format("point {}:{} is marked as shard {} of {} along axis {}; shards count from 0",
                    where.kind, where.layer, part.index, part.count, part.axis)};
  }
  known_.push_back({std::string{where.kind}, where.layer, part});
  const std::lock_guard held{guard};
  counted.points.push_back({std::string{where.kind}, where.layer, part.index, part.count});
  return known_.size() - 1;
}

std::optional<tapped_point> tap_core::tapped(point where, const tensor_ref& what) {
  const std::uint64_t id = id_of(where);
  const auto spec =
      std::ranges::find_if(specs_, [&](const tap_spec& one) { return one.where.contains(where); });
  if (spec == specs_.end() || spec->rows.what() == row_mode::kind::none || stopped()) {
    return std::nullopt;
  }
  if (!(what.strides == contiguous_strides(what.shape))) {
    throw usage_error{
        fmt::format("point {}:{} is no contiguous tensor; mark a contiguous copy of it", where.kind,
                    where.layer)};
  }
  tapped_point made;
  made.id = id;
  made.kind = known_[id].kind;
  made.layer = where.layer;
  made.shard = where.shard;
  made.rows = spec->rows;
  made.type = what.type;
  made.width = what.shape.rank == 0 ? 1 : what.shape[what.shape.rank - 1];
  made.row_bytes = static_cast<std::uint64_t>(made.width) * size_of(what.type);
  made.source_rows =
      made.width == 0 ? 0 : static_cast<std::int64_t>(what.shape.count()) / made.width;
  const bool chunks = made.rows.what() == row_mode::kind::chunked;
  if (chunks && made.source_rows % made.rows.parts() != 0) {
    throw usage_error{
        fmt::format("point {}:{} has {} rows, which are no {} equal chunks; tap it by another mode",
                    where.kind, where.layer, made.source_rows, made.rows.parts())};
  }
  return made;
}

void tap_core::next_step(std::span<const request_rows> requests, step_gate gate) {
  drains.raise_failure();
  requests_.assign(requests.begin(), requests.end());
  gate_ = gate;
}

std::uint64_t tap_core::begin_step() {
  requests_.clear();
  gate_ = step_gate::gated;
  const std::lock_guard held{guard};
  ++counted.steps;
  return steps_++;
}

asked_room tap_core::ask(std::span<const tapped_point> points,
                         std::span<const request_rows> requests) {
  std::optional<std::int64_t> began;
  for (;;) {
    flights::answer answer{};
    flight* promised = nullptr;
    {
      const std::lock_guard held{guard};
      answer = all.promise(points, requests);
      if (answer == flights::answer::fits) promised = &all.newest();
      if (answer == flights::answer::never) ++counted.never_fit;
      if (began && answer != flights::answer::full) {
        counted.waited_ms += static_cast<std::uint64_t>(host_time(device).count() - *began);
      }
    }
    switch (answer) {
      case flights::answer::fits: return {asked_room::answer::fits, promised};
      case flights::answer::nothing: return {asked_room::answer::nothing};
      case flights::answer::never: return {asked_room::answer::never};
      case flights::answer::full: break;
    }
    if (options.drop_when_full || drains.failed()) {
      drop(points);
      return {asked_room::answer::dropped};
    }
    if (!began) {
      landmark("tap: waited for room");
      began = host_time(device).count();
      const std::lock_guard held{guard};
      ++counted.reserve_waits;
    }
    if (wait_for_room(*began + options.wait_limit_ms)) continue;
    drop(points);
    const std::lock_guard held{guard};
    ++counted.timed_out;
    counted.waited_ms += static_cast<std::uint64_t>(host_time(device).count() - *began);
    return {asked_room::answer::dropped};
  }
}

// False: the limit is over. Whoever waits drains, where nobody else does.
bool tap_core::wait_for_room(std::int64_t deadline) {
  if (drains.pump()) return true;
  {
    const std::lock_guard held{guard};
    all.probe_oldest();
  }
  pause(device);
  return host_time(device).count() < deadline;
}

void tap_core::drop(std::span<const tapped_point> points) {
  const std::lock_guard held{guard};
  for (const tapped_point& one : points) {
    if (!one.enabled) continue;
    ++counted.dropped;
    ++counted.points[one.id].dropped;
  }
}

void tap_core::launched(flight& one, stream_ref on, std::uint64_t step, replay_id replay) {
  const std::lock_guard held{guard};
  all.launched(one, on, step, replay);
}

void tap_core::withdraw(flight& one) {
  const std::lock_guard held{guard};
  all.withdraw(one);
}

void tap_core::deliver_directly(const tapped_point& one, std::span<const request_rows> requests,
                                std::uint64_t step, replay_id replay, std::vector<std::byte> bytes,
                                std::uint64_t most) {
  for (;;) {
    {
      const std::lock_guard held{guard};
      if (!all.is_full()) {
        all.add_direct(one, requests, std::move(bytes), most);
        all.newest().step = step;
        all.newest().replay = replay;
        return;
      }
    }
    if (drains.failed()) return drop({&one, 1});
    wait_for_room(0);
  }
}

std::shared_ptr<const reason> tap_core::never_fits(std::string_view what,
                                                   std::span<const tapped_point> points) {
  std::uint64_t bytes = 0;
  std::size_t enabled = 0;
  for (const tapped_point& one : points) {
    if (!one.enabled) continue;
    ++enabled;
    bytes += padded(static_cast<std::uint64_t>(one.source_rows) * one.row_bytes);
  }
  const std::string asked = fmt::format("{} publications, {} bytes at most", enabled, bytes);
  const std::string limits =
      fmt::format("{} slots, {} bytes of ring, {} of staging, {} runs", options.slots,
                  options.ring_bytes, options.staging_bytes, options.most_runs);
  if (!options.allow_eager_fallback) {
    throw usage_error{fmt::format(
        "taps of {}: {} never fit {}; raise that limit of monitor_options, or watch fewer points",
        what, asked, limits)};
  }
  return because("taps never fit", {{std::string{what}, limits, asked,
                                     "raise that limit of monitor_options, or watch fewer points; "
                                     "until then the step runs eagerly, point by point"}});
}

void tap_core::told_plan() {
  const std::lock_guard held{guard};
  ++counted.uploads;
}

void tap_core::deliver_all() {
  drains.raise_failure();
  std::uint64_t number = 0;
  {
    const std::lock_guard held{guard};
    number = all.next_number();
    ++counted.flushes;
  }
  drains.deliver_up_to(number);
}

void tap_core::flush() {
  deliver_all();
  if (!REPRISE_MUTANT(flush_stops_at_the_drain)) drains.outlets().flush();
}

void tap_core::await_request(std::uint64_t request) {
  std::uint64_t number = 0;
  {
    const std::lock_guard held{guard};
    for (std::size_t i = 0; i < all.count(); ++i) {
      if (all.at(i).plan.names(request)) number = all.at(i).number + 1;
    }
  }
  drains.deliver_up_to(number);
  if (!REPRISE_MUTANT(request_is_awaited_at_the_drain)) drains.outlets().await_request(request);
}

void tap_core::stop() {
  if (stopped_.exchange(true)) return;
  ++version_;
  std::exception_ptr failed;
  const auto tried = [&](auto&& call) {
    try {
      call();
    } catch (const std::exception&) {
      if (!failed) failed = std::current_exception();
    }
  };
  tried([&] { deliver_all(); });
  ending_.store(true);
  woken_.notify_all();
  thread_.reset();
  tried([&] { drains.outlets().close(); });
  if (failed) std::rethrow_exception(failed);
}

tap_counts tap_core::counts() {
  tap_counts now;
  {
    const std::lock_guard held{guard};
    now = counted;
    all.count_planned(now.points);
  }
  drains.outlets().count(now);
  return now;
}

std::string tap_core::unmatched() {
  std::vector<point> known;
  for (const known_point& one : known_) known.push_back({one.kind, one.layer});
  for (const tap_spec& one : specs_) {
    if (std::string text = one.where.unmatched(known); !text.empty()) return text;
  }
  return {};
}

void tap_core::run_drain() {
  const bool owns_time = device.api().threads() != nullptr;
  while (!ending_.load()) {
    if (drains.pump()) continue;
    if (owns_time) {
      pause(device);
      continue;
    }
    std::unique_lock held{sleeping_};
    woken_.wait_for(held, drain_nap, [this] { return ending_.load(); });
  }
}

}  // namespace reprise
