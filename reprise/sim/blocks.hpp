// The memory that a simulated device gave out: device and pinned blocks alike are the host's own.
// Everything else is pageable host memory. Thread safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>

#include "reprise/sim/block_search.hpp"

namespace reprise::sim {

class block_table {
 public:
  static constexpr std::size_t alignment = 256;

  block_table() = default;
  block_table(const block_table&) = delete;
  block_table& operator=(const block_table&) = delete;
  ~block_table() {
    for (const auto& [begin, bytes] : blocks_) std::free(begin);
  }

  // Null when there is no memory.
  std::byte* allocate(std::size_t bytes) {
    const std::size_t size = (bytes + alignment - 1) / alignment * alignment;
    if (size < bytes) return nullptr;
    void* const begin = std::aligned_alloc(alignment, std::max(size, alignment));
    if (begin == nullptr) return nullptr;
    const std::lock_guard lock{guard_};
    blocks_.emplace(static_cast<std::byte*>(begin), bytes);
    return static_cast<std::byte*>(begin);
  }

  void release(std::byte* begin) noexcept {
    {
      const std::lock_guard lock{guard_};
      blocks_.erase(begin);
    }
    std::free(begin);
  }

  // Whether some of these bytes lie in a block, but not all of them in one.
  bool strays(const std::byte* begin, std::size_t bytes) const {
    if (owns(begin, bytes)) return false;
    const std::lock_guard lock{guard_};
    return any_lies_in(blocks_, begin, bytes, std::identity{});
  }

  // Whether all of these bytes lie in one block.
  bool owns(const std::byte* begin, std::size_t bytes) const {
    const std::lock_guard lock{guard_};
    return holder_of(blocks_, begin, bytes, std::identity{}) != blocks_.end();
  }

 private:
  mutable std::mutex guard_;
  std::map<std::byte*, std::size_t, std::less<>> blocks_;
};

}  // namespace reprise::sim
