#include "reprise/sim/workers.hpp"

#include <algorithm>
#include <utility>

namespace reprise::sim {

namespace {

constexpr int spins_before_sleep = 4000;  // some 10 us

void spin_while_equal(const std::atomic<std::uint32_t>& word, std::uint32_t value) {
  for (int i = 0; i < spins_before_sleep; ++i) {
    if (word.load(std::memory_order_acquire) != value) return;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
}

}  // namespace

workers::workers(int threads) {
  for (int i = 1; i < threads; ++i) pool_.emplace_back([this] { loop(); });
}

workers::~workers() {
  stopping_ = true;
  job_.fetch_add(1, std::memory_order_release);
  job_.notify_all();
  for (std::thread& t : pool_) t.join();
}

void workers::run_on(void* self, std::int64_t count, worker_ref::piece body, void* context) {
  static_cast<workers*>(self)->run(count, body, context);
}

void workers::run(std::int64_t count, worker_ref::piece body, void* context) {
  if (pool_.empty() || running_.exchange(true, std::memory_order_acquire)) {
    body(context, 0, count);
    return;
  }
  body_ = body;
  context_ = context;
  count_ = count;
  // Several pieces a thread, so that a late thread does not hold up the others.
  piece_ = std::max<std::int64_t>(1, (count + 4 * threads() - 1) / (4 * threads()));
  next_.store(0, std::memory_order_relaxed);
  busy_.store(static_cast<std::uint32_t>(pool_.size()), std::memory_order_relaxed);
  job_.fetch_add(1, std::memory_order_release);
  job_.notify_all();
  work_off();
  for (std::uint32_t left = busy_.load(std::memory_order_acquire); left != 0;
       left = busy_.load(std::memory_order_acquire)) {
    spin_while_equal(busy_, left);
    if (busy_.load(std::memory_order_acquire) == left) busy_.wait(left, std::memory_order_acquire);
  }
  const std::exception_ptr thrown = std::exchange(thrown_, nullptr);
  running_.store(false, std::memory_order_release);
  if (thrown) std::rethrow_exception(thrown);
}

// A piece that throws ends the job: nobody takes another piece.
void workers::work_off() noexcept {
  for (;;) {
    const std::int64_t first = next_.fetch_add(piece_, std::memory_order_relaxed);
    if (first >= count_) return;
    try {
      body_(context_, first, std::min(first + piece_, count_));
    } catch (...) {
      const std::lock_guard lock{thrown_guard_};
      if (!thrown_) thrown_ = std::current_exception();
      next_.store(count_, std::memory_order_relaxed);
    }
  }
}

void workers::loop() {
  std::uint32_t seen = 0;
  for (;;) {
    spin_while_equal(job_, seen);
    job_.wait(seen, std::memory_order_acquire);
    seen = job_.load(std::memory_order_acquire);
    if (stopping_) return;
    work_off();
    if (busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) busy_.notify_one();
  }
}

}  // namespace reprise::sim
