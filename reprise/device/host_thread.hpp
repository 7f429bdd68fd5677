// Host threads that use a device: a drain, a sink, a second user.
//
// On a device that owns time (the simulated GPU) one host thread runs at a time and hands over at
// its calls of the seam, so that one seed is one run; it has to know every thread that calls it.
// Elsewhere these are threads as any other.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <thread>

#include "reprise/device/device.hpp"

namespace reprise {

// What a device that owns time does about threads; device_api::threads().
class host_scheduler {
 public:
  virtual ~host_scheduler() = default;
  // Returns at once; `body` does not throw, and runs when it is given a turn.
  virtual std::uint64_t start(std::function<void()> body) = 0;
  // Others run until that thread has ended.
  virtual void join(std::uint64_t thread) = 0;
  // Others may run now, and work of the device.
  virtual void pause() = 0;
  // The device's own time, in which each pause lasts a millisecond.
  virtual std::chrono::milliseconds now() const = 0;
};

class host_thread {
 public:
  host_thread(device_ref device, std::function<void()> body);
  // Joins; what the body threw and nobody asked for is reported.
  ~host_thread();
  host_thread(const host_thread&) = delete;
  host_thread& operator=(const host_thread&) = delete;

  // Returns when the body has; rethrows what it threw. Once.
  void join();

 private:
  void wait();

  host_scheduler* scheduler_;
  std::exception_ptr thrown_;
  std::uint64_t number_ = 0;  // with a scheduler
  std::thread thread_;        // without
  bool ended_ = false;
};

// In a loop that waits for what another thread or the device does.
void pause(device_ref device);

// For limits of such loops: of the device where it owns time, else of the machine. Never goes back.
std::chrono::milliseconds host_time(device_ref device);

// Until `done()`; other host threads of the device run meanwhile.
template <class Done>
void wait_until(device_ref device, Done&& done) {
  while (!done()) pause(device);
}

}  // namespace reprise
