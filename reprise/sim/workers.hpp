// The threads that one CPU body may spread over.
//
// One job at a time: a second caller runs its pieces itself. Waiting workers spin for some
// microseconds before they sleep, because a decode step is a row of ops of about ten microseconds.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "reprise/device/cpu_call.hpp"

namespace reprise::sim {

class workers {
 public:
  // `threads` counts the calling one; 1 starts none.
  explicit workers(int threads);
  ~workers();
  workers(const workers&) = delete;
  workers& operator=(const workers&) = delete;

  int threads() const { return static_cast<int>(pool_.size()) + 1; }
  worker_ref ref() { return {&run_on, this, threads()}; }

 private:
  static void run_on(void* self, std::int64_t count, worker_ref::piece body, void* context);
  void run(std::int64_t count, worker_ref::piece body, void* context);
  void work_off() noexcept;
  void loop();

  // The current job: written by run() while no worker is busy, read by workers after `job_`.
  worker_ref::piece body_ = nullptr;
  void* context_ = nullptr;
  std::int64_t count_ = 0;
  std::int64_t piece_ = 1;

  std::exception_ptr thrown_;  // by a piece of the job, the first; under thrown_guard_
  std::mutex thrown_guard_;

  std::atomic<std::int64_t> next_{0};
  std::atomic<std::uint32_t> job_{0};   // moves when a job is there, or at the end
  std::atomic<std::uint32_t> busy_{0};  // workers that have not finished the current job
  std::atomic<bool> stopping_{false};
  std::atomic<bool> running_{false};  // a job; the caller of a second one may be inside the first
  std::vector<std::thread> pool_;
};

}  // namespace reprise::sim
