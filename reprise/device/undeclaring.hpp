// A decorator that forgets what works declare: chosen works go on without one of their accesses.
// Tests show with it that a device which watches memory finds an access that nobody declared. What
// is above it (the door's watches, owners of pinned memory) still sees all.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reprise/device/api.hpp"

namespace reprise {

// Shared with the test. Thread safe; outlives the device.
class dropped_access {
 public:
  // From now on works of this label, enqueued or set as parameters, lose their index-th access,
  // counted from 0 in the order of the declaration; works that have fewer lose nothing.
  void drop(std::string label, std::size_t index);
  std::uint64_t dropped() const { return dropped_; }  // accesses, so far

  // What is left of the declaration.
  std::vector<access> left_of(const work& what);

 private:
  mutable std::mutex guard_;
  std::vector<std::pair<std::string, std::size_t>> chosen_;
  std::atomic<std::uint64_t> dropped_{0};
};

std::unique_ptr<device_api> undeclaring(std::unique_ptr<device_api> inner,
                                        std::shared_ptr<dropped_access> plan);

}  // namespace reprise
