#include "reprise/replay/staging.hpp"

#include <algorithm>
#include <cstring>

#include "reprise/device/enqueue.hpp"

namespace reprise {

namespace {

constexpr std::size_t alignment = 256;  // as of a buffer of its own

}  // namespace

input_layout::input_layout(bindings given) : offsets_(given.size()) {
  std::vector<std::size_t> sizes(given.size());
  for (const binding& b : given) sizes[static_cast<std::size_t>(b.slot)] = b.to.bytes();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    offsets_[i] = bytes_;
    bytes_ += (sizes[i] + alignment - 1) / alignment * alignment;
  }
}

void staging::stage(stream_ref stream, bindings given, const input_layout& layout, std::byte* block,
                    std::source_location place) {
  const site at{stream, place};
  std::size_t first = layout.bytes();  // the span of the block that comes from the host
  std::size_t last = 0;
  for (const binding& b : given) {
    if (!b.on_host || b.to.bytes() == 0) continue;
    const std::size_t offset = layout.offset(static_cast<std::size_t>(b.slot));
    first = std::min(first, offset);
    last = std::max(last, offset + b.to.bytes());
  }
  if (first < last) {
    slot& from = free_slot(layout.bytes(), place);
    for (const binding& b : given) {
      if (!b.on_host || b.to.bytes() == 0) continue;
      std::memcpy(from.memory.data() + layout.offset(static_cast<std::size_t>(b.slot)), b.to.data,
                  b.to.bytes());
    }
    copy_bytes(at, from.memory.data() + first, block + first, last - first);
    from.copied->record(stream, place);
    from.in_use = true;
  }
  // Inputs on the device come after: the one copy above may have run over their places.
  for (const binding& b : given) {
    if (b.on_host) continue;
    copy_bytes(at, b.to.data, block + layout.offset(static_cast<std::size_t>(b.slot)),
               b.to.bytes());
  }
}

staging::slot& staging::free_slot(std::size_t bytes, std::source_location place) {
  slot& chosen = slots_[next_];
  next_ = (next_ + 1) % slots;
  if (chosen.in_use && !chosen.copied->finished(place)) {
    ++waits_;
    chosen.copied->synchronize(place);
  }
  chosen.in_use = false;
  if (!chosen.copied) chosen.copied.emplace(device_, place);
  if (chosen.memory.bytes() < bytes) chosen.memory = pinned_block{device_, bytes, place};
  return chosen;
}

std::size_t staging::pinned_bytes() const {
  std::size_t total = 0;
  for (const slot& s : slots_) total += s.memory.bytes();
  return total;
}

}  // namespace reprise
