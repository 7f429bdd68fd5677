#include "reprise/device/ledger.hpp"

#include <algorithm>
#include <iterator>

namespace reprise {

pinned_memory::pinned_memory(device_state& device, std::size_t bytes, std::source_location from)
    : device_{device},
      bytes_{bytes},
      data_{device.api->allocate(memory_kind::pinned, std::max<std::size_t>(bytes, 1), from)} {}

pinned_memory::~pinned_memory() {
  memory_ledger& ledger = *device_.ledger;
  ledger.remove(*this);
  if (!ledger.closed()) device_.api->release(memory_kind::pinned, data_);
}

void memory_ledger::add(const std::shared_ptr<pinned_memory>& memory) {
  const std::lock_guard lock{guard_};
  pinned_.emplace(memory->data(), memory);
  pinned_bytes_ += memory->bytes();
}

void memory_ledger::remove(const pinned_memory& memory) noexcept {
  const std::lock_guard lock{guard_};
  if (pinned_.erase(memory.data()) != 0) pinned_bytes_ -= memory.bytes();
}

std::shared_ptr<const pinned_memory> memory_ledger::find_pinned(const void* address) const {
  const auto* const at = static_cast<const std::byte*>(address);
  std::shared_ptr<const pinned_memory> found;  // outlives the lock: it may be the last one
  const std::lock_guard lock{guard_};
  const auto after = pinned_.upper_bound(at);
  if (after == pinned_.begin()) return nullptr;
  found = std::prev(after)->second.lock();
  if (found == nullptr || at >= found->data() + std::max<std::size_t>(found->bytes(), 1)) {
    return nullptr;
  }
  return found;
}

void memory_ledger::add(const std::shared_ptr<const pool_state>& pool) {
  const std::lock_guard lock{guard_};
  pools_.emplace(pool.get(), pool);
}

void memory_ledger::remove(const pool_state* pool) noexcept {
  const std::lock_guard lock{guard_};
  pools_.erase(pool);
}

std::vector<std::shared_ptr<const pool_state>> memory_ledger::pools() const {
  std::vector<std::shared_ptr<const pool_state>> alive;
  const std::lock_guard lock{guard_};
  for (const auto& [address, pool] : pools_) {
    if (auto held = pool.lock()) alive.push_back(std::move(held));
  }
  return alive;
}

std::shared_ptr<const capture_token> memory_ledger::token_of(stream_ref captured) {
  device_api& api = captured.device().api();
  const std::uint64_t number = api.place_in_capture(captured.id()).capture;
  const std::lock_guard lock{guard_};
  std::weak_ptr<const capture_token>& known = tokens_[number];
  if (auto alive = known.lock()) return alive;
  auto fresh = std::make_shared<const capture_token>();
  api.keep(captured.id(), fresh);
  known = fresh;
  std::erase_if(tokens_,
                [&](const auto& entry) { return entry.first != number && entry.second.expired(); });
  return fresh;
}

}  // namespace reprise
