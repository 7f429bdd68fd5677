// A sink that counts, compares records with what is right while it is told to, and can be held: it
// then takes nothing until it is let go, as a sink does that sleeps.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "reprise/device/device.hpp"
#include "reprise/records/record_sink.hpp"

namespace reprise::bench {

// Shared with whoever made the sink. Any thread may read and set it.
struct seen_records {
  std::atomic<std::uint64_t> records{0};
  std::atomic<std::uint64_t> compared{0};
  std::atomic<std::uint64_t> wrong{0};  // of those that were compared
  std::atomic<bool> compares{false};
  std::atomic<bool> held{false};
  std::atomic<bool> asleep{false};  // the sink has been called while it was held

  void let_go() {
    held.store(false);
    held.notify_all();
  }
};

std::unique_ptr<record_sink> checking_sink(device_ref device, std::shared_ptr<seen_records> into,
                                           std::function<bool(const tap_record&)> is_right);

}  // namespace reprise::bench
