#include "reprise/records/sink_queue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "reprise/base/mutant.hpp"
#include "reprise/formats/printable.hpp"

namespace reprise {

namespace {

std::size_t bytes_of(std::span<const tap_record> records) {
  std::size_t bytes = 0;
  for (const tap_record& record : records) bytes += record.bytes.size();
  return bytes;
}

sink_queue_options checked(sink_queue_options options) {
  const bool bounded = options.most_records != 0 && options.most_bytes != 0 &&
                       options.batch_records != 0 && options.batch_bytes != 0 &&
                       options.attempts > 0;
  const bool timed = options.age_limit_us >= 0 && options.wait_limit_us >= 0 &&
                     options.first_pause_us >= 0 && options.longest_pause_us >= 0;
  if (!bounded || !timed) {
    throw usage_error{
        fmt::format("the queue of sink {}: a bound is 0 or a time is negative; give "
                    "each at least 1, and times from 0",
                    formats::quoted_name(options.name))};
  }
  return options;
}

}  // namespace

sink_queue::sink_queue(std::unique_ptr<record_sink> sink, std::string_view run,
                       sink_queue_options options)
    : options_{checked(std::move(options))}, sink_{std::move(sink)} {
  if (sink_ == nullptr) throw usage_error{"a sink queue without a sink; open one with open_sink"};
  sink_->open(run);
  worker_ = std::thread{[this] { work(); }};
}

sink_queue::~sink_queue() {
  try {
    close();
  } catch (const std::exception& failed) {
    report_error(failed.what());
  }
}

bool sink_queue::publish(std::span<const tap_record> records) {
  return push(std::make_shared<const record_batch>(records));
}

bool sink_queue::push(std::shared_ptr<const record_batch> batch) {
  std::unique_lock held{guard_};
  refuse_if_closed();
  raise_what_was_lost();
  counts_.published += batch->records().size();
  if (!for_good_ && !has_room_for(*batch) && !wait_for_room(held, *batch)) {
    counts_.dropped += batch->records().size();
    lose(batch->records(), "the queue was full");
    return false;
  }
  if (for_good_) {
    lose(batch->records(), counts_.first_error);
    return false;
  }
  take(std::move(batch));
  return true;
}

bool sink_queue::push_if_room(const std::shared_ptr<const record_batch>& batch) {
  const std::lock_guard held{guard_};
  refuse_if_closed();
  raise_what_was_lost();
  if (for_good_ || !has_room_for(*batch)) return false;
  counts_.published += batch->records().size();
  take(batch);
  return true;
}

void sink_queue::refuse_if_closed() const {
  if (!closing_) return;
  throw usage_error{fmt::format("sink {} is closed; hand over all records before close()",
                                formats::quoted_name(options_.name))};
}

void sink_queue::raise_what_was_lost() {
  if (to_raise_.empty()) return;
  throw sink_error{sink_trouble::records, std::exchange(to_raise_, {})};
}

// Room is given back when records are settled, so what is on its way counts too.
bool sink_queue::has_room_for(const record_batch& batch) const {
  if (REPRISE_MUTANT(full_queue_takes_more)) return true;
  if (counts_.waiting == 0) return true;
  return counts_.waiting + batch.records().size() <= options_.most_records &&
         counts_.waiting_bytes + bytes_of(batch.records()) <= options_.most_bytes;
}

// Returns whether there is room, or nothing left to wait for.
bool sink_queue::wait_for_room(std::unique_lock<std::mutex>& held, const record_batch& batch) {
  if (options_.full == when_full::drop) return false;
  const std::int64_t began = options_.clock.now_us();
  const std::int64_t until = began + options_.wait_limit_us;
  ++counts_.waits;
  ++waiting_for_room_;
  changed_.notify_all();  // what waits is due now, however young
  const auto ready = [&] { return for_good_ || has_room_for(batch); };
  while (!ready() && options_.clock.now_us() < until) options_.clock.wait(held, changed_, until);
  --waiting_for_room_;
  counts_.waited_us += options_.clock.now_us() - began;
  return ready();
}

void sink_queue::take(std::shared_ptr<const record_batch> batch) {
  const std::span<const tap_record> records = batch->records();
  if (records.empty()) return;
  const std::size_t bytes = bytes_of(records);
  for (const tap_record& record : records) last_of_[record.request] = ++handed_;
  in_chunks_ += records.size();
  bytes_in_chunks_ += bytes;
  counts_.waiting += records.size();
  counts_.waiting_bytes += bytes;
  chunks_.push_back({std::move(batch), 0, options_.clock.now_us()});
  changed_.notify_all();
}

void sink_queue::lose(std::span<const tap_record> records, const std::string& why) {
  if (REPRISE_MUTANT(lost_records_are_not_counted)) return;
  counts_.lost += records.size();
  for (const tap_record& record : records) ++counts_.lost_of[point_name(record)];
  if (counts_.first_error.empty()) counts_.first_error = why;
  if (options_.loss == when_lost::raise && to_raise_.empty()) {
    to_raise_ = fmt::format(
        "sink {} lost {} records: {}; what went before is kept, and what comes "
        "is taken",
        formats::quoted_name(options_.name), records.size(), why);
  }
}

void sink_queue::flush() {
  std::unique_lock held{guard_};
  flush_up_to(held, handed_);
}

void sink_queue::await_request(std::uint64_t request) {
  std::unique_lock held{guard_};
  const auto last = last_of_.find(request);
  flush_up_to(held, last == last_of_.end() ? settled_ : last->second);
}

void sink_queue::flush_up_to(std::unique_lock<std::mutex>& held, std::uint64_t handed) {
  if (!closing_) {
    flush_up_to_ = std::max(flush_up_to_, handed);
    const std::uint64_t mine = ++flushes_asked_;
    changed_.notify_all();
    changed_.wait(held, [&] { return flushes_done_ >= mine || closed_; });
  }
  raise_what_was_lost();
}

void sink_queue::close() {
  {
    const std::lock_guard held{guard_};
    if (closing_) return;
    closing_ = true;
    changed_.notify_all();
  }
  worker_.join();
  const std::lock_guard held{guard_};
  std::string line =
      REPRISE_MUTANT(close_tells_no_loss) ? std::string{} : loss_text(options_.name, counts_);
  if (line.empty() && !close_failed_.empty()) {
    line = fmt::format("sink {} could not be closed: {}", formats::quoted_name(options_.name),
                       close_failed_);
  }
  if (!line.empty()) throw sink_error{sink_trouble::for_good, line};
}

sink_counts sink_queue::counts() const {
  const std::lock_guard held{guard_};
  return counts_;
}

}  // namespace reprise
