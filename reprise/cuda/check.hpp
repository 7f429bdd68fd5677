// Turns CUDA's status codes into the errors of base/error.hpp. For this room's .cpp files.
//
// Most codes are about one call, but CUDA also keeps them in an error slot of the thread, where a
// later, healthy call would find them: failing clears the slot. After a few others (an illegal
// address, an assert in a kernel) CUDA answers every call with the same code until the process
// ends. The device is then lost, and every later call says so without asking CUDA again.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstddef>
#include <mutex>
#include <source_location>
#include <string>
#include <string_view>

namespace reprise::cuda {

// "cudaErrorInvalidValue (1): invalid argument"
std::string text_of(cudaError_t status);

// Whether CUDA documents that only a new process can use the device again.
bool loses_the_device(cudaError_t status);

// What a failing call says of itself.
struct failing_call {
  std::string_view call;
  std::source_location from;
  bool captured = false;      // it would have become part of a graph
  std::size_t asked = 0;      // bytes, for out_of_memory
  bool of_the_device = true;  // the memory asked for, so that the device's free bytes are told
};

// Whether one device still works, and how its calls fail. Thread safe; a passing check is one load.
class health {
 public:
  explicit health(std::string device) : device_{std::move(device)} {}

  const std::string& device() const { return device_; }
  bool lost() const noexcept { return lost_.load(std::memory_order_acquire); }

  // First line of every call.
  void require(std::string_view call, std::source_location from) const {
    if (lost()) [[unlikely]] {
      throw_lost({call, from});
    }
  }

  void check(cudaError_t status, std::string_view call, std::source_location from) {
    if (status != cudaSuccess) [[unlikely]] {
      fail(status, {call, from});
    }
  }

  // Throws out_of_memory, capture_error (when `where` was captured) or device_error.
  [[noreturn]] void fail(cudaError_t status, const failing_call& where);

  // For calls that may not throw. A lost device is told once, not by each destructor.
  void report(cudaError_t status, std::string_view call) noexcept;

 private:
  [[noreturn]] void throw_lost(const failing_call& where) const;
  bool note_loss(cudaError_t status);  // true: it was not known yet

  std::string device_;
  std::atomic<bool> lost_{false};
  mutable std::mutex guard_;
  std::string lost_why_;  // under guard_, written once
};

}  // namespace reprise::cuda
