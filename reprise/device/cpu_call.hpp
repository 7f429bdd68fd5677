// What a CPU body is given beside its arguments: its workspace, and threads to spread over.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

namespace reprise {

// Runs `body(context, first, last)` over pieces of [0, count), some of them on other threads, and
// returns when all are done; then throws what a piece threw first. Pieces are handed out in any
// order: a body's result may not depend on where the cuts are.
struct worker_ref {
  using piece = void (*)(void* context, std::int64_t first, std::int64_t last);
  void (*run)(void* workers, std::int64_t count, piece body, void* context) = nullptr;
  void* workers = nullptr;
  int threads = 1;
};

class cpu_call {
 public:
  cpu_call(std::span<std::byte> workspace, worker_ref workers)
      : workspace_{workspace}, workers_{workers} {}

  // Device scratch of the size that the cell's workspace_bytes asked for; contents are undefined.
  std::span<std::byte> workspace() const { return workspace_; }

  // body(first, last) over pieces of [0, count). Fewer than `grain` items per thread are not worth
  // a thread; everything then runs on the calling one.
  template <class Body>
  void parallel_for(std::int64_t count, std::int64_t grain, Body&& body) const {
    if (workers_.threads <= 1 || count < 2 * std::max<std::int64_t>(grain, 1)) {
      body(std::int64_t{0}, count);
      return;
    }
    workers_.run(
        workers_.workers, count,
        [](void* context, std::int64_t first, std::int64_t last) {
          (*static_cast<std::remove_reference_t<Body>*>(context))(first, last);
        },
        const_cast<void*>(static_cast<const void*>(std::addressof(body))));
  }

 private:
  std::span<std::byte> workspace_;
  worker_ref workers_;
};

}  // namespace reprise
