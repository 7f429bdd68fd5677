#include "reprise/device/freed_memory.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "reprise/base/fault_points.hpp"
#include "reprise/base/mutant.hpp"

namespace reprise {

void freed_memory::tell(const std::byte* begin, std::size_t bytes) noexcept {
  if (spans_.load(std::memory_order_acquire) == 0 || REPRISE_MUTANT(nobody_is_told_of_a_free)) {
    return;
  }
  const std::lock_guard lock{guard_};
  // Nothing that begins further ahead reaches into the block.
  const auto* const earliest =
      begin - std::min<std::size_t>(longest_, reinterpret_cast<std::uintptr_t>(begin));
  for (auto at = by_begin_.lower_bound(earliest);
       at != by_begin_.end() && at->first < begin + bytes; ++at) {
    if (at->first + at->second.bytes <= begin) continue;
    std::size_t first = freed_watch::none;
    at->second.by->gone_.compare_exchange_strong(first, at->second.index,
                                                 std::memory_order_acq_rel);
    landmark("freed memory: a recording was told");
  }
}

freed_watch::freed_watch(device_ref device) : told_by_{*device.state().freed} {}

void freed_watch::add(const span& more) {
  const std::lock_guard lock{told_by_.guard_};
  told_by_.by_begin_.emplace(more.begin, freed_memory::watched{more.bytes, this, spans_.size()});
  told_by_.longest_ = std::max(told_by_.longest_, more.bytes);
  spans_.push_back(more);
  ++told_by_.spans_;
}

freed_watch::~freed_watch() {
  const std::lock_guard lock{told_by_.guard_};
  for (const span& s : spans_) {
    auto at = told_by_.by_begin_.lower_bound(s.begin);
    while (at->second.by != this) ++at;
    told_by_.by_begin_.erase(at);
  }
  told_by_.spans_ -= spans_.size();
}

std::optional<std::size_t> freed_watch::first_gone() const noexcept {
  const std::size_t gone = gone_.load(std::memory_order_acquire);
  return gone == none ? std::nullopt : std::optional{gone};
}

}  // namespace reprise
