// Where host threads of a device meet: each says that it came and goes on when all have. In place
// of std::latch, which a device that owns time cannot see through: there a thread that waits
// without a call of the seam would keep its turn for good.
#pragma once

#include <atomic>

#include "reprise/device/host_thread.hpp"

namespace reprise::test {

class all_came {
 public:
  all_came(device_ref device, int threads) : device_{device}, missing_{threads} {}

  void arrive_and_wait() {
    --missing_;
    wait_until(device_, [&] { return missing_ <= 0; });
  }

 private:
  device_ref device_;
  std::atomic<int> missing_;
};

}  // namespace reprise::test
