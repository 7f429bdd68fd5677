// Whether this thread is inside a body that is being recorded, in a warm-up or a capture. What such
// a body reads from the host, every replay would repeat; so a few things are refused there.
#pragma once

#include <utility>

namespace reprise {

class recorded_body {
 public:
  // Until it dies: `recorded` is false in a break, which runs anew at each replay.
  explicit recorded_body(bool recorded) : before_{std::exchange(here_, recorded)} {}
  ~recorded_body() { here_ = before_; }
  recorded_body(const recorded_body&) = delete;
  recorded_body& operator=(const recorded_body&) = delete;

  static bool is_here() noexcept { return here_; }

 private:
  static inline thread_local bool here_ = false;
  bool before_;
};

}  // namespace reprise
