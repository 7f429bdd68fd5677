// Being told that memory is gone: a recording names the spans that its graph touches, and is void
// from the moment one of them is freed, before any replay can touch it.
//
// Pools tell of every block that goes back. Looking costs one load; a free costs a look-up while
// anybody watches. Thread safe: memory may be freed on any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "reprise/base/mutex.hpp"
#include "reprise/device/device.hpp"

namespace reprise {

class freed_watch;

// Who watches what, of one device.
class freed_memory {
 public:
  void tell(const std::byte* begin, std::size_t bytes) noexcept;

 private:
  friend class freed_watch;
  struct watched {
    std::size_t bytes;
    freed_watch* by;
    std::size_t index;
  };

  std::atomic<std::size_t> spans_{0};
  mutex guard_;  // of all below
  std::multimap<const std::byte*, watched> by_begin_;
  std::size_t longest_ = 0;  // bytes of the longest span so far
};

class freed_watch {
 public:
  struct span {
    const std::byte* begin = nullptr;
    std::size_t bytes = 0;
  };

  explicit freed_watch(device_ref device);
  ~freed_watch();
  freed_watch(const freed_watch&) = delete;
  freed_watch& operator=(const freed_watch&) = delete;

  // Watched from here on. One thread at a time.
  void add(const span& more);

  bool intact() const noexcept { return gone_.load(std::memory_order_acquire) == none; }
  // Which of the spans, in the order they were added, went first.
  std::optional<std::size_t> first_gone() const noexcept;
  const std::vector<span>& spans() const { return spans_; }

 private:
  friend class freed_memory;
  static constexpr std::size_t none = ~std::size_t{0};

  freed_memory& told_by_;
  std::vector<span> spans_;
  std::atomic<std::size_t> gone_{none};
};

}  // namespace reprise
