// A mutex that a device which owns time can see through.
//
// The simulated GPU lets one host thread run at a time, and hands over inside calls of the seam. A
// thread that holds a mutex may lose its turn there; the next one that wants the mutex then lets
// others run until it is free. Everywhere else this is std::mutex and costs the same. Code that may
// call the seam while it holds a mutex uses this one; `std::lock_guard` takes it.
#pragma once

#include <mutex>

namespace reprise {

// What a host thread does instead of blocking: others run, and it looks again.
struct turn_taker {
  void (*let_others_run)(void* scheduler) = nullptr;
  void* scheduler = nullptr;
};

// Of this thread; set by the device that runs it, and empty for all others.
inline thread_local turn_taker this_threads_turn;

class mutex {
 public:
  void lock() {
    if (guard_.try_lock()) return;
    const turn_taker turn = this_threads_turn;
    if (turn.let_others_run == nullptr) return guard_.lock();
    do {
      turn.let_others_run(turn.scheduler);
    } while (!guard_.try_lock());
  }
  bool try_lock() { return guard_.try_lock(); }
  void unlock() { guard_.unlock(); }

 private:
  std::mutex guard_;
};

}  // namespace reprise
