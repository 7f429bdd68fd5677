#include "reprise/records/queue_clock.hpp"

#include <chrono>

namespace reprise {

queue_clock steady_queue_clock() {
  using std::chrono::microseconds;
  using std::chrono::steady_clock;
  return {.now_us =
              [] {
                const auto now = steady_clock::now().time_since_epoch();
                return std::int64_t{std::chrono::duration_cast<microseconds>(now).count()};
              },
          .wait =
              [](std::unique_lock<std::mutex>& held, std::condition_variable& changed,
                 std::int64_t until_us) {
                changed.wait_until(held, steady_clock::time_point{microseconds{until_us}});
              }};
}

}  // namespace reprise
