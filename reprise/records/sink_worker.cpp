// The thread behind a sink_queue: when a batch is due, and what becomes of it.
#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include "reprise/base/mutant.hpp"
#include "reprise/records/delivery.hpp"
#include "reprise/records/sink_queue.hpp"

namespace reprise {

// Records on their way, and what keeps them: several hand-overs become one batch without a copy.
struct sink_queue::outgoing {
  std::vector<tap_record> records;
  std::vector<std::shared_ptr<const record_batch>> kept;
  std::int64_t oldest_us = 0;
};

void sink_queue::work() {
  std::unique_lock held{guard_};
  while (true) {
    if (batch_is_due()) {
      deliver_next(held);
    } else if (flushes_done_ < flushes_asked_) {
      flush_sink(held);
    } else if (closing_) {
      break;
    } else if (chunks_.empty() || REPRISE_MUTANT(age_limit_is_forgotten)) {
      changed_.wait(held);
    } else {
      options_.clock.wait(held, changed_, chunks_.front().at_us + options_.age_limit_us);
    }
  }
  ++flushes_asked_;
  flush_sink(held);
  held.unlock();
  close_sink();
  held.lock();
  closed_ = true;
  changed_.notify_all();
}

bool sink_queue::batch_is_due() const {
  if (chunks_.empty()) return false;
  const bool wanted = closing_ || waiting_for_room_ > 0 ||
                      (settled_ < flush_up_to_ && !REPRISE_MUTANT(flush_ends_before_the_sink));
  const bool large =
      in_chunks_ >= options_.batch_records || bytes_in_chunks_ >= options_.batch_bytes;
  return wanted || large ||
         options_.clock.now_us() >= chunks_.front().at_us + options_.age_limit_us;
}

sink_queue::outgoing sink_queue::gather() {
  outgoing batch{.records = {}, .kept = {}, .oldest_us = chunks_.front().at_us};
  std::size_t bytes = 0;
  while (!chunks_.empty()) {
    chunk& first = chunks_.front();
    const std::span<const tap_record> records = first.batch->records();
    for (; first.begin < records.size(); ++first.begin) {
      const tap_record& next = records[first.begin];
      const bool full = batch.records.size() == options_.batch_records ||
                        (bytes != 0 && bytes + next.bytes.size() > options_.batch_bytes);
      if (full) {
        batch.kept.push_back(first.batch);
        return batch;
      }
      batch.records.push_back(next);
      bytes += next.bytes.size();
      --in_chunks_;
      bytes_in_chunks_ -= next.bytes.size();
    }
    batch.kept.push_back(std::move(first.batch));
    chunks_.pop_front();
  }
  return batch;
}

void sink_queue::deliver_next(std::unique_lock<std::mutex>& held) {
  const outgoing batch = gather();
  if (for_good_) {
    lose(batch.records, counts_.first_error);
    settle(batch.records);
    return;
  }
  held.unlock();
  const records::delivery_events tell{
      .delivered =
          [&](std::span<const tap_record> records) {
            const std::lock_guard lock{guard_};
            counts_.delivered += records.size();
            ++counts_.batches;
            counts_.longest_lag_us =
                std::max(counts_.longest_lag_us, options_.clock.now_us() - batch.oldest_us);
            settle(records);
          },
      .lost =
          [&](std::span<const tap_record> records, const std::string& why) {
            const std::lock_guard lock{guard_};
            lose(records, why);
            settle(records);
          },
      .again = [&](std::int64_t pause_us) { pause(pause_us); }};
  const records::retry_rule rule{.attempts = options_.attempts,
                                 .first_pause_us = options_.first_pause_us,
                                 .longest_pause_us = options_.longest_pause_us};
  const bool goes_on = records::deliver(*sink_, batch.records, rule, tell);
  held.lock();
  if (!goes_on) for_good_ = true;
  changed_.notify_all();
}

// They are the first of those that were not settled. Called with the lock held.
void sink_queue::settle(std::span<const tap_record> records) {
  settled_ += records.size();
  counts_.waiting -= records.size();
  for (const tap_record& record : records) counts_.waiting_bytes -= record.bytes.size();
  if (settled_ == handed_) {
    last_of_.clear();
  } else {
    for (const tap_record& record : records) {
      const auto last = last_of_.find(record.request);
      if (last != last_of_.end() && last->second <= settled_) last_of_.erase(last);
    }
  }
  changed_.notify_all();
}

void sink_queue::flush_sink(std::unique_lock<std::mutex>& held) {
  const std::uint64_t asked = flushes_asked_;
  const std::uint64_t lost = counts_.lost;
  std::string failed;
  bool again = !for_good_;
  for (int attempt = 1; again; ++attempt) {
    held.unlock();
    failed.clear();
    again = false;
    try {
      if (lost != 0) sink_->note_lost(lost);
      sink_->flush();
    } catch (const sink_error& wrong) {
      failed = wrong.what();
      again = wrong.trouble() != sink_trouble::for_good && attempt < options_.attempts;
    } catch (const std::exception& wrong) {
      failed = wrong.what();
      again = attempt < options_.attempts;
    } catch (...) {
      failed = "the sink threw what is no std::exception";
    }
    if (again) {
      pause(records::pause_us({.attempts = options_.attempts,
                               .first_pause_us = options_.first_pause_us,
                               .longest_pause_us = options_.longest_pause_us},
                              attempt));
    }
    held.lock();
  }
  ++counts_.flushes;
  if (!failed.empty()) {
    ++counts_.failed_flushes;
    if (counts_.first_error.empty()) counts_.first_error = failed;
    if (options_.loss == when_lost::raise && to_raise_.empty()) to_raise_ = failed;
  }
  flushes_done_ = asked;
  changed_.notify_all();
}

void sink_queue::close_sink() noexcept {
  std::uint64_t lost = 0;
  {
    const std::lock_guard held{guard_};
    lost = counts_.lost;
  }
  std::string failed;
  try {
    if (lost != 0) sink_->note_lost(lost);
    sink_->close();
  } catch (const std::exception& wrong) {
    failed = wrong.what();
  } catch (...) {
    failed = "the sink threw what is no std::exception";
  }
  const std::lock_guard lock{guard_};
  close_failed_ = std::move(failed);
}

// Between two attempts. Called without the lock.
void sink_queue::pause(std::int64_t pause_us) {
  std::unique_lock held{guard_};
  ++counts_.retries;
  const std::int64_t until = options_.clock.now_us() + pause_us;
  while (options_.clock.now_us() < until) options_.clock.wait(held, changed_, until);
}

}  // namespace reprise
