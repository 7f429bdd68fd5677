// Time that moves when a test says so: queues wait by it, and no test sleeps.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>

#include "reprise/records/queue_clock.hpp"

namespace reprise::test {

class virtual_time {
 public:
  // `jumps`: whoever waits is at that time at once. Otherwise advance() and advance_to_next() move.
  explicit virtual_time(bool jumps = false) : jumps_{jumps} {}

  queue_clock clock() {
    return {.now_us = [this] { return now_us(); },
            .wait = [this](std::unique_lock<std::mutex>& held, std::condition_variable& changed,
                           std::int64_t until_us) { wait(held, changed, until_us); }};
  }

  std::int64_t now_us() const {
    const std::lock_guard held{guard_};
    return now_us_;
  }

  void advance(std::int64_t us) { go_to(now_us() + us); }

  // Waits until somebody waits for a time, and goes to the first of those times.
  void advance_to_next() {
    std::int64_t next = 0;
    {
      std::unique_lock held{guard_};
      const auto waited_for = [&] {
        return std::ranges::any_of(waiting_, [&](const waiter& w) { return w.until_us > now_us_; });
      };
      if (!somebody_waits_.wait_for(held, std::chrono::seconds{10}, waited_for)) {
        ADD_FAILURE() << "nobody waits for any time";
        return;
      }
      next = INT64_MAX;
      for (const waiter& w : waiting_) {
        if (w.until_us > now_us_) next = std::min(next, w.until_us);
      }
    }
    go_to(next);
  }

 private:
  struct waiter {
    std::mutex* of;
    std::condition_variable* changed;
    std::int64_t until_us;
  };

  void wait(std::unique_lock<std::mutex>& held, std::condition_variable& changed,
            std::int64_t until_us) {
    std::list<waiter>::iterator mine;
    {
      const std::lock_guard lock{guard_};
      if (jumps_) now_us_ = std::max(now_us_, until_us);
      if (now_us_ >= until_us) return;
      mine = waiting_.insert(waiting_.end(), {held.mutex(), &changed, until_us});
      somebody_waits_.notify_all();
    }
    changed.wait(held);
    const std::lock_guard lock{guard_};
    waiting_.erase(mine);
  }

  void go_to(std::int64_t us) {
    std::list<waiter> woken;
    {
      const std::lock_guard held{guard_};
      now_us_ = std::max(now_us_, us);
      woken = waiting_;
    }
    for (const waiter& w : woken) {
      // A waiter holds its lock from looking at the time until it waits: it cannot miss this.
      const std::lock_guard lock{*w.of};
      w.changed->notify_all();
    }
  }

  const bool jumps_;
  mutable std::mutex guard_;
  std::condition_variable somebody_waits_;
  std::list<waiter> waiting_;
  std::int64_t now_us_ = 0;
};

}  // namespace reprise::test
