// The clock that durations are measured with.
#pragma once

#include <chrono>

namespace reprise {

// Microseconds since some fixed moment of this process; never goes back.
inline double now_us() {
  using microseconds = std::chrono::duration<double, std::micro>;
  return microseconds{std::chrono::steady_clock::now().time_since_epoch()}.count();
}

}  // namespace reprise
