// The memory that a device has given out, by address: so that a copy knows, without asking CUDA,
// whether a pointer is its own. For this room's .cpp files.
#pragma once

#include <cstddef>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <utility>

#include "reprise/device/api.hpp"

namespace reprise::cuda {

struct block_info {
  std::size_t bytes = 0;
  memory_kind kind = memory_kind::device;
};

// Blocks never overlap. As records do, blocks that are released while a capture is open anywhere in
// the process wait: cudaFree inside a capture breaks it. Thread safe.
class block_table {
 public:
  using blocks = std::map<const std::byte*, block_info>;

  void add(const std::byte* begin, block_info info) {
    const std::lock_guard lock{guard_};
    live_.emplace(begin, info);
  }

  // The kind of the block that holds this address; nothing: not ours.
  std::optional<memory_kind> find(const std::byte* address) const {
    const std::shared_lock lock{guard_};
    const auto after = live_.upper_bound(address);
    if (after == live_.begin()) return std::nullopt;
    const auto& [begin, info] = *std::prev(after);
    if (address >= begin + info.bytes) return std::nullopt;
    return info.kind;
  }

  // Takes a block out; it is to be freed now unless `hold()` says that it has to wait here.
  enum class taken { free_now, later, not_ours };
  template <class Hold>
  taken take(const std::byte* begin, Hold&& hold) noexcept {
    const std::lock_guard lock{guard_};
    blocks::node_type block = live_.extract(begin);
    if (block.empty()) return taken::not_ours;
    if (!hold()) return taken::free_now;
    doomed_.insert(std::move(block));  // a node moves without allocating
    return taken::later;
  }

  blocks take_doomed() noexcept {
    const std::lock_guard lock{guard_};
    return std::exchange(doomed_, {});
  }

  blocks take_live() noexcept {
    const std::lock_guard lock{guard_};
    return std::exchange(live_, {});
  }

 private:
  mutable std::shared_mutex guard_;
  blocks live_;
  blocks doomed_;
};

}  // namespace reprise::cuda
