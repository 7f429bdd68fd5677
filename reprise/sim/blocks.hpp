// The memory that a simulated device gave out: device and pinned blocks alike are the host's own.
// Everything else is pageable host memory. Thread safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>

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
    auto at = blocks_.upper_bound(begin);
    if (at != blocks_.end() && at->first < begin + bytes) return true;
    if (at == blocks_.begin()) return false;
    --at;
    return begin < at->first + at->second;
  }

  // Whether all of these bytes lie in one block.
  bool owns(const std::byte* begin, std::size_t bytes) const {
    const std::lock_guard lock{guard_};
    const auto after = blocks_.upper_bound(begin);
    if (after == blocks_.begin()) return false;
    const auto& [block, size] = *std::prev(after);
    const auto offset = static_cast<std::size_t>(begin - block);
    return offset <= size && bytes <= size - offset;
  }

 private:
  mutable std::mutex guard_;
  std::map<std::byte*, std::size_t, std::less<>> blocks_;
};

}  // namespace reprise::sim
