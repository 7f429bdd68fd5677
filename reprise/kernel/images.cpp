#include "reprise/kernel/images.hpp"

#include <algorithm>

namespace reprise {

void image_map::add(const void* begin, std::size_t bytes) {
  if (bytes == 0) return;
  view_image fresh{static_cast<const std::byte*>(begin), bytes, nullptr};
  // Those that it overlaps become part of it. Neighbours stay apart.
  std::erase_if(images_, [&](const view_image& old) {
    const std::byte* const end = fresh.begin + fresh.bytes;
    const std::byte* const old_end = old.begin + old.bytes;
    if (old.begin >= end || fresh.begin >= old_end) return false;
    fresh.begin = std::min(fresh.begin, old.begin);
    fresh.bytes = static_cast<std::size_t>(std::max(end, old_end) - fresh.begin);
    return true;
  });
  images_.insert(std::ranges::upper_bound(images_, fresh.begin, {}, &view_image::begin), fresh);
}

std::byte* image_map::copy_of(const void* at) const {
  const auto* const byte = static_cast<const std::byte*>(at);
  const auto past = std::ranges::upper_bound(images_, byte, {}, &view_image::begin);
  if (past == images_.begin()) return nullptr;
  const view_image& one = *std::prev(past);
  return byte < one.begin + one.bytes ? one.copy + (byte - one.begin) : nullptr;
}

}  // namespace reprise
