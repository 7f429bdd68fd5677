// The time that queues wait by: of the machine, or of a test that moves it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

namespace reprise {

struct queue_clock {
  // Microseconds since some fixed moment; never goes back. From any thread.
  std::function<std::int64_t()> now_us;
  // Returns when `changed` was notified or the time has come, or earlier: callers look again.
  std::function<void(std::unique_lock<std::mutex>& held, std::condition_variable& changed,
                     std::int64_t until_us)>
      wait;
};

// The machine's, by std::chrono::steady_clock.
queue_clock steady_queue_clock();

}  // namespace reprise
