#include "reprise/grad/frame_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/base/fault_points.hpp"
#include "reprise/grad/frame.hpp"
#include "reprise/replay/run_memory.hpp"

namespace reprise {

namespace {

constexpr std::size_t most_growth = std::size_t{64} << 20;

}  // namespace

frame_memory::frame_memory(device_ref device, byte_budget& budget, std::string label)
    : memory_{device, std::move(label)}, share_{budget} {}

std::span<std::byte> frame_memory::take(std::size_t bytes, stream_ref stream,
                                        std::source_location place) {
  const std::size_t size = run_memory::taken_for(bytes);
  if (!fault_point("frame memory: grows although there is room")) {
    for (chunk& one : chunks_) {
      const std::span<std::byte> found = take_from(one, size);
      if (found.data() != nullptr) return found;
    }
  }
  grow(size, stream, place);
  return take_from(chunks_.back(), size);
}

std::span<std::byte> frame_memory::take_apart(std::size_t bytes, stream_ref stream,
                                              std::source_location place) {
  const std::size_t size = run_memory::taken_for(bytes);
  for (const chunk& one : chunks_) {
    if (one.is_apart && one.memory.bytes() >= size) return {one.memory.data(), size};
  }
  grow(size, stream, place);
  chunk& made = chunks_.back();
  made.free.clear();
  made.is_apart = true;
  return {made.memory.data(), size};
}

std::span<std::byte> frame_memory::take_from(chunk& from, std::size_t bytes) {
  const auto fits =
      std::ranges::find_if(from.free, [&](const auto& one) { return one.second >= bytes; });
  if (fits == from.free.end()) return {};
  const auto [begin, size] = *fits;
  from.free.erase(fits);
  if (size > bytes) from.free.emplace(begin + bytes, size - bytes);
  return {begin, bytes};
}

void frame_memory::grow(std::size_t bytes, stream_ref stream, std::source_location place) {
  const std::size_t growth = std::max(bytes, std::min(bytes_, most_growth));
  const std::size_t before = share_.bytes();
  const auto charge = [&](std::size_t size) { return share_.become(before + size); };
  const std::size_t charged = charge(growth) ? growth : charge(bytes) ? bytes : 0;
  if (charged == 0) {
    throw usage_error{
        fmt::format("the byte budget has no room for {} more bytes of '{}'; give a larger budget, "
                    "or fewer slots",
                    bytes, memory_.label())};
  }
  try {
    chunks_.push_back({block::fresh(memory_, charged, stream, place), {}});
  } catch (...) {
    share_.become(before);
    throw;
  }
  chunk& made = chunks_.back();
  made.free.emplace(made.memory.data(), made.memory.bytes());
  bytes_ += charged;
}

void frame_memory::give_back(std::span<std::byte> taken) noexcept {
  if (taken.data() == nullptr) return;
  const auto owner = std::ranges::find_if(chunks_, [&](const chunk& one) {
    return taken.data() >= one.memory.data() &&
           taken.data() < one.memory.data() + one.memory.bytes();
  });
  // drop_all has given it back, or it is scratch of all.
  if (owner == chunks_.end() || owner->is_apart) return;
  auto& free = owner->free;
  auto here = free.emplace(taken.data(), taken.size()).first;
  const auto next = std::next(here);
  if (next != free.end() && here->first + here->second == next->first) {
    here->second += next->second;
    free.erase(next);
  }
  if (here == free.begin()) return;
  const auto before = std::prev(here);
  if (before->first + before->second == here->first) {
    before->second += here->second;
    free.erase(here);
  }
}

std::uint64_t frame_memory::add(const std::shared_ptr<frame>& one) {
  frames_.emplace(next_index_, one);
  return next_index_++;
}

std::vector<std::shared_ptr<frame>> frame_memory::frames() const {
  std::vector<std::shared_ptr<frame>> living;
  for (const auto& [index, one] : frames_) {
    if (std::shared_ptr<frame> held = one.lock()) living.push_back(std::move(held));
  }
  return living;
}

void frame_memory::prune() {
  if (std::erase_if(frames_, [](const auto& one) { return one.second.expired(); }) == 0) return;
  std::vector<std::uint64_t> living;
  for (const auto& [index, one] : frames_) living.push_back(index);
  voided.prune(living);
}

void frame_memory::freed_on(stream_ref stream) {
  for (chunk& one : chunks_) one.memory.freed_on(stream);
}

void frame_memory::drop_all() {
  chunks_.clear();
  bytes_ = 0;
  share_.give_back();
  // A pool leases its slabs until it goes.
  const device_ref device = memory_.device();
  memory_ = pool{device, memory_.label()};
  device.trim();
}

}  // namespace reprise
