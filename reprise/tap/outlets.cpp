#include "reprise/tap/outlets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "reprise/base/mutant.hpp"
#include "reprise/telemetry/log.hpp"

namespace reprise {

void record_outlets::add(std::unique_ptr<record_sink> sink, sink_queue_options options) {
  const std::lock_guard held{listed_};
  const std::string asked = options.name;
  const auto is_taken = [&] {
    return std::ranges::any_of(sinks_.queues(),
                               [&](const auto& queue) { return queue->name() == options.name; });
  };
  for (int n = 2; is_taken(); ++n) options.name = fmt::format("{} {}", asked, n);
  sinks_.add(std::move(sink), std::move(options));
}

void record_outlets::add(record_call call) {
  if (!call) throw usage_error{"deliver_to without a function; give one"};
  const std::lock_guard held{calling_};
  calls_.push_back(std::move(call));
}

void record_outlets::deliver(std::span<const tap_record> records) {
  if (records.empty()) return;
  {
    const std::lock_guard held{calling_};
    for (const record_call& call : calls_) call_with_each(call, records);
  }
  const std::shared_lock held{listed_};
  const std::uint64_t sinks = sinks_.queues().size();
  if (sinks == 0) return;
  try {
    sinks_.publish(records);
  } catch (const sink_error& earlier) {
    keep(earlier.what());  // these records were handed over all the same
  } catch (const std::exception& failed) {
    note_called(records.size() * sinks);
    lose(records.size() * sinks, failed.what());
  }
}

void record_outlets::call_with_each(const record_call& call, std::span<const tap_record> records) {
  note_called(records.size());
  for (const tap_record& one : records) {
    try {
      call(one);
    } catch (const std::exception& failed) {
      lose(1, failed.what());
    } catch (...) {
      lose(1, "a function threw what is no std::exception");
    }
  }
}

void record_outlets::note_called(std::uint64_t records) {
  const std::lock_guard held{guard_};
  called_ += records;
}

void record_outlets::lose(std::uint64_t records, const std::string& why) {
  if (REPRISE_MUTANT(records_that_a_call_lost_are_not_counted)) return;
  {
    const std::lock_guard held{guard_};
    lost_ += records;
    if (first_loss_.empty()) first_loss_ = why;
  }
  keep(fmt::format("taps lost {} records on their way: {}", records, why));
}

// Of several the first is told, in the log at once and to whoever asks.
void record_outlets::keep(const std::string& line) {
  {
    const std::lock_guard held{guard_};
    if (!to_raise_.empty()) return;
    to_raise_ = line;
  }
  log_line(line);
}

void record_outlets::raise() {
  const std::lock_guard held{guard_};
  if (!to_raise_.empty()) throw sink_error{sink_trouble::records, std::exchange(to_raise_, {})};
}

void record_outlets::flush() {
  if (closed_.load()) return;
  if (!REPRISE_MUTANT(queues_are_left_out_of_flush)) {
    const std::shared_lock held{listed_};
    try {
      sinks_.flush();
    } catch (const sink_error& lost) {
      keep(lost.what());
    }
  }
  raise();
}

void record_outlets::await_request(std::uint64_t request) {
  if (closed_.load()) return;
  {
    const std::shared_lock held{listed_};
    try {
      sinks_.await_request(request);
    } catch (const sink_error& lost) {
      keep(lost.what());
    }
  }
  raise();
}

void record_outlets::close() {
  if (closed_.exchange(true)) return;
  {
    const std::shared_lock held{listed_};
    sinks_.close();
  }
  const std::lock_guard held{guard_};
  if (lost_ == 0) return;
  throw sink_error{
      sink_trouble::for_good,
      fmt::format("taps lost {} of {} records on their way: {}", lost_, called_, first_loss_)};
}

void record_outlets::count(tap_counts& into) const {
  for (const named_sink_counts& sink : counts()) {
    into.sink_published += sink.counts.published;
    into.sink_delivered += sink.counts.delivered;
    into.sink_lost += sink.counts.lost;
  }
  const std::lock_guard held{guard_};
  into.sink_published += called_;
  into.sink_delivered += called_ - lost_;
  into.sink_lost += lost_;
}

std::vector<named_sink_counts> record_outlets::counts() const {
  const std::shared_lock held{listed_};
  return sinks_.counts();
}

std::string record_outlets::metrics() const {
  const std::shared_lock held{listed_};
  return sinks_.metrics();
}

}  // namespace reprise
