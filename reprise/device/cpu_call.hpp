// What a CPU body is given beside its arguments: its workspace, and threads to spread over.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include "reprise/device/elements.hpp"
#include "reprise/device/view.hpp"

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

// What a device hands over, to bodies of either compile (base/portable.hpp).
struct cpu_loan {
  std::span<std::byte> workspace;
  worker_ref workers;
};

}  // namespace reprise

namespace reprise::REPRISE_BODIES {

class cpu_call {
 public:
  using loan = cpu_loan;

  explicit cpu_call(const cpu_loan& lent) : lent_{lent} {}
  cpu_call(std::span<std::byte> workspace, worker_ref workers) : lent_{workspace, workers} {}

  // Device scratch of the size that the cell's workspace_bytes asked for, in elements of T;
  // contents are undefined.
  template <class T = std::byte>
  view<T> workspace() const {
    return {reinterpret_cast<T*>(lent_.workspace.data()), lent_.workspace.size() / sizeof(T)};
  }

  // body(first, last) over pieces of [0, count). Fewer than `grain` items per thread are not worth
  // a thread; everything then runs on the calling one.
  template <class Body>
  void parallel_for(std::int64_t count, std::int64_t grain, Body&& body) const {
    if (stays_here() || count < 2 * std::max<std::int64_t>(grain, 1)) {
      body(std::int64_t{0}, count);
      return;
    }
    lent_.workers.run(
        lent_.workers.workers, count,
        [](void* context, std::int64_t first, std::int64_t last) {
          (*static_cast<std::remove_reference_t<Body>*>(context))(first, last);
        },
        const_cast<void*>(static_cast<const void*>(std::addressof(body))));
  }

 private:
  bool stays_here() const {
#if defined(REPRISE_CHECKED)
    if (touches_of_this_thread != nullptr) return true;  // the log is this thread's
#endif
    return lent_.workers.threads <= 1;
  }

  cpu_loan lent_;
};

// So that its address is that of the loan: a device makes a plain cpu_call, and a checked body
// makes its own of what that holds.
static_assert(std::is_standard_layout_v<cpu_call> && sizeof(cpu_call) == sizeof(cpu_loan));

}  // namespace reprise::REPRISE_BODIES
