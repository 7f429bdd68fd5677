// A decorator that makes one call fail: the n-th of those that can. Tests walk n from 1 on until
// nothing fails any more, and have then seen every place where a device can let them down.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "reprise/device/api.hpp"

namespace reprise {

// Shared with the test. Thread safe; outlives the device.
class fault_plan {
 public:
  // The n-th call from now on fails, once; 0 disarms.
  void fail_call(std::uint64_t n) {
    fired_ = false;
    left_ = n;
  }
  bool fired() const { return fired_; }  // since it was armed

  // Counts one call down; true if it is the one that fails.
  bool strikes() {
    std::uint64_t left = left_;
    while (left != 0 && !left_.compare_exchange_weak(left, left - 1)) {
    }
    if (left != 1) return false;
    fired_ = true;
    return true;
  }

 private:
  std::atomic<std::uint64_t> left_{0};
  std::atomic<bool> fired_{false};
};

// Allocations fail as out_of_memory, calls of a capture as capture_error, all else as device_error;
// the call that fails has done nothing.
std::unique_ptr<device_api> faulty(std::unique_ptr<device_api> inner,
                                   std::shared_ptr<fault_plan> plan);

}  // namespace reprise
