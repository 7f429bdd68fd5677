#include "reprise/replay/output_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/base/fault_points.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/device/enqueue.hpp"

namespace reprise {

namespace {

std::uint64_t number(replay_id run) {
  return static_cast<std::uint64_t>(run);
}

}  // namespace

replay_id next_replay() {
  static std::atomic<std::uint64_t> last{0};
  return replay_id{last.fetch_add(1, std::memory_order_relaxed) + 1};
}

output_hold::~output_hold() {
  if (!aside || readers.empty()) return;
  device_state& device = copied_on->device().state();
  try {
    const bool takes_waits =
        device.is_live(copied_on->id()) && !device.is_captured(copied_on->id());
    for (const stream_id reader : readers) {
      const bool ordered =
          takes_waits && device.order_after(reader, *copied_on, std::source_location::current());
      if (!ordered) device.wait_for({reader});
    }
  } catch (const error& failed) {
    report_error(failed.what());
  }
}

void output_table::belongs_to(const signature& declared) {
  if (of_ == declared.recorded_as()) return;
  of_ = declared.recorded_as();
  step_ = declared.name();
  known_.clear();
  for (const declared_output& out : declared.outputs()) {
    known_.push_back({out.name, out.policy});
  }
}

replay_id output_table::begin(stream_ref stream) {
  if (!REPRISE_MUTANT(lease_outlives_a_replay)) current_ = next_replay();
  last_ = stream.id();
  return current_;
}

void output_table::end(device_ref device, const std::optional<stream_ref>& last,
                       std::source_location place) noexcept {
  try {
    if (REPRISE_MUTANT(memory_goes_before_its_readers)) readers_.clear();
    if (last) make_way({*last, place}, true);
    device.state().wait_for(readers_);
  } catch (const error& failed) {
    report_error(failed.what());
  }
  readers_.clear();
  current_ = replay_id::none;
}

std::shared_ptr<const reason> output_table::refusal() const {
  for (const std::weak_ptr<output_hold>& one : holds_) {
    const std::shared_ptr<output_hold> held = one.lock();
    if (held == nullptr || held->run != current_) continue;
    const known_output& output = known_[held->slot];
    if (output.policy != on_overwrite::refuse) continue;
    const std::string who = held->label.empty() ? "a lease" : "'" + held->label + "'";
    return std::make_shared<const reason>(
        reason{"output held",
               {{output.name, "nobody holds it",
                 fmt::format("{} holds it since run {}", who, number(held->run)),
                 "release the lease, clone the output, or declare it on_overwrite::move_aside"}}});
  }
  return nullptr;
}

void output_table::make_way(site at, bool moves_refused) {
  if (!holds_.empty()) {
    for (const std::weak_ptr<output_hold>& one : holds_) {
      const std::shared_ptr<output_hold> held = one.lock();
      if (held == nullptr || held->run != current_ || held->aside) continue;
      const on_overwrite policy = known_[held->slot].policy;
      if (policy == on_overwrite::move_aside || (moves_refused && policy == on_overwrite::refuse)) {
        move_aside(at, *held);
      }
    }
    std::erase_if(holds_, [&](const std::weak_ptr<output_hold>& one) {
      const std::shared_ptr<output_hold> held = one.lock();
      return held == nullptr || held->aside;
    });
  }
  if (readers_.empty()) return;
  for (const stream_id reader : readers_) {
    if (reader == at.stream.id() || REPRISE_MUTANT(readers_of_a_lease_are_not_waited_for)) continue;
    landmark("lease: a run waited for a reader");
    if (!at.stream.device().state().order_after(reader, at.stream, at.place)) {
      throw usage_error{
          fmt::format("step '{}': a stream that reads its output is being captured; end that "
                      "capture before the next run, or clone the output",
                      step_)};
    }
  }
  readers_.clear();
}

bool output_table::has_to_move() const {
  return std::ranges::any_of(holds_, [&](const std::weak_ptr<output_hold>& one) {
    const std::shared_ptr<output_hold> held = one.lock();
    return held != nullptr && held->run == current_ && !held->aside &&
           known_[held->slot].policy == on_overwrite::move_aside;
  });
}

void output_table::move_aside(site at, output_hold& held) {
  const tensor_ref& from = outputs_[held.slot];
  if (REPRISE_MUTANT(nothing_is_moved_aside)) {
    held.at = from;
    held.aside.emplace();
    held.copied_on = at.stream;
    return;
  }
  if (!aside_) aside_.emplace(at.stream.device(), "outputs moved aside");
  block to{*aside_, from.bytes(), at.stream, at.place};
  copy_bytes(at, from.data, to.data(), from.bytes());
  landmark("lease: moved aside");
  held.at = from;
  held.at.data = to.data();
  held.aside = std::move(to);
  held.copied_on = at.stream;
  // Readers of the lease are in the order of the run's own stream.
  if (last_ != at.stream.id() && at.stream.device().state().is_live(last_)) {
    at.stream.device().state().order_after(at.stream.id(), {at.stream.device(), last_}, at.place);
  }
}

std::shared_ptr<output_hold> output_table::hold(replay_id run, std::size_t slot,
                                                std::string label) {
  if (run != current_ || known_[slot].policy == on_overwrite::revoke) return nullptr;
  auto held = std::make_shared<output_hold>(run, slot, std::move(label));
  holds_.push_back(held);
  return held;
}

bool output_table::has(replay_id run, const output_hold* held) const noexcept {
  return run == current_ || (held != nullptr && held->aside);
}

const tensor_ref& output_table::leased(replay_id run, std::size_t slot,
                                       const output_hold* held) const {
  if (held != nullptr && held->aside) return held->at;
  if (run == current_) return outputs_[slot];
  landmark("lease: gone stale");
  if (current_ == replay_id::none) {
    throw stale_error{
        fmt::format("the output of run {} is gone with the recording of step '{}'; read "
                    "or clone it before the recording is dropped",
                    number(run), step_)};
  }
  throw stale_error{
      fmt::format("the output of run {} was overwritten by run {} of step '{}'; read or "
                  "clone it before the next run",
                  number(run), number(current_), step_)};
}

void output_table::order(output_hold* held, stream_ref stream, std::source_location place) {
  const bool moved = held != nullptr && held->aside;
  const stream_id writer = moved ? held->copied_on->id() : last_;
  if (writer != stream.id()) {
    landmark("lease: used on another stream");
    if (!stream.device().state().order_after(writer, stream, place)) {
      throw usage_error{fmt::format(
          "step '{}': the stream of its run is being captured; read the output before", step_)};
    }
  }
  if (moved && writer == stream.id()) return;
  (moved ? held->readers : readers_).insert(stream.id());
}

}  // namespace reprise
