// A decorator that makes one call fail: the n-th of those that can, or the n-th of one kind. Tests
// walk n from 1 on until nothing fails any more, and have then seen every place where a device can
// let them down; or they say `fail_call(seam_call::synchronize, 1)`.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "reprise/device/api.hpp"
#include "reprise/device/seam_call.hpp"

namespace reprise {

// Shared with the test; one fault at a time, the last that was asked for. Thread safe; outlives the
// device.
class fault_plan {
 public:
  // The n-th call from now on fails, once; 0 disarms.
  void fail_call(std::uint64_t n) { arm(any_kind, n); }
  // The n-th of this kind. The begin of a capture is one call, and so is its end. Giving memory
  // back never fails.
  void fail_call(seam_call kind, std::uint64_t n) { arm(static_cast<int>(kind), n); }
  bool fired() const { return fired_; }  // since it was armed

  // Counts one call down; true if it is the one that fails.
  bool strikes(seam_call kind) {
    const int wanted = kind_;
    if (wanted != any_kind && wanted != static_cast<int>(kind)) return false;
    std::uint64_t left = left_;
    while (left != 0 && !left_.compare_exchange_weak(left, left - 1)) {
    }
    if (left != 1) return false;
    fired_ = true;
    return true;
  }

 private:
  static constexpr int any_kind = -1;

  void arm(int kind, std::uint64_t n) {
    left_ = 0;
    fired_ = false;
    kind_ = kind;
    left_ = n;
  }

  std::atomic<int> kind_{any_kind};
  std::atomic<std::uint64_t> left_{0};
  std::atomic<bool> fired_{false};
};

// Allocations fail as out_of_memory, calls of a capture as capture_error, all else as device_error;
// the call that fails has done nothing.
std::unique_ptr<device_api> faulty(std::unique_ptr<device_api> inner,
                                   std::shared_ptr<fault_plan> plan);

}  // namespace reprise
