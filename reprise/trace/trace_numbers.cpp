#include "reprise/trace/trace_numbers.hpp"

#include <iterator>

namespace reprise {

void memory_numbers::forget_overlapped(stretches& all, const std::byte* begin, std::size_t bytes) {
  auto at = all.upper_bound(begin);
  if (at != all.begin()) {
    const auto before = std::prev(at);
    if (before->first == begin ||
        begin - before->first < static_cast<std::ptrdiff_t>(before->second.bytes)) {
      at = before;
    }
  }
  while (at != all.end() && at->first < begin + bytes) at = all.erase(at);
}

memory_numbers::stretches::const_iterator memory_numbers::holding(const stretches& all,
                                                                  const std::byte* begin,
                                                                  std::size_t bytes) {
  const auto after = all.upper_bound(begin);
  if (after == all.begin()) return all.end();
  const auto found = std::prev(after);
  const auto offset = static_cast<std::size_t>(begin - found->first);
  // An empty span may lie at the very end.
  const bool holds = offset < found->second.bytes || (bytes == 0 && offset == found->second.bytes);
  return holds ? found : all.end();
}

block_number memory_numbers::born(const std::byte* begin, std::size_t bytes, memory_kind kind) {
  forget_overlapped(blocks_, begin, bytes);
  forget_overlapped(host_, begin, bytes);
  blocks_[begin] = {++last_block_, bytes, kind, true};
  return block_number{last_block_};
}

block_number memory_numbers::released(const std::byte* begin) {
  const auto found = blocks_.find(begin);
  if (found == blocks_.end()) return block_number::none;
  found->second.live = false;
  return block_number{found->second.number};
}

traced_range memory_numbers::of(const void* begin, std::size_t bytes, released_memory meaning) {
  if (begin == nullptr) return {memory_space::null, 0, 0, bytes};
  const auto* const first = static_cast<const std::byte*>(begin);
  if (const auto block = holding(blocks_, first, bytes);
      block != blocks_.end() &&
      (block->second.live || meaning == released_memory::names_its_block)) {
    return {memory_space::block, block->second.number,
            static_cast<std::uint64_t>(first - block->first), bytes};
  }
  if (const auto known = holding(host_, first, bytes); known != host_.end()) {
    const auto offset = static_cast<std::size_t>(first - known->first);
    if (bytes <= known->second.bytes - offset) {
      return {memory_space::host, known->second.number, offset, bytes};
    }
  }
  forget_overlapped(host_, first, bytes);
  host_[first] = {++last_host_, bytes, memory_kind::pinned, true};
  return {memory_space::host, last_host_, 0, bytes};
}

place_number place_numbers::of(const capture_place& place) {
  if (place.capture == 0) return place_number::none;
  const place_number next{numbers_.size() + 1};
  return numbers_.try_emplace({place.capture, place.branch, place.steps}, next).first->second;
}

}  // namespace reprise
