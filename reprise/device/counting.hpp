// A decorator that counts every call of the seam by kind, so that a test can say "one launch, no
// synchronise", and a run can show that it captured nothing.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "reprise/device/api.hpp"
#include "reprise/device/seam_call.hpp"

namespace reprise {

// Thread safe; outlives the device that counts into it.
class call_counts {
 public:
  std::uint64_t operator[](seam_call call) const {
    return counts_[static_cast<std::size_t>(call)].load(std::memory_order_relaxed);
  }
  void add(seam_call call) {
    counts_[static_cast<std::size_t>(call)].fetch_add(1, std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<std::uint64_t>, seam_calls> counts_{};
};

std::unique_ptr<device_api> counting(std::unique_ptr<device_api> inner,
                                     std::shared_ptr<call_counts> into);

}  // namespace reprise
