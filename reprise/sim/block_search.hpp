// Blocks of memory by their begin: in which one some bytes lie, and whether they only touch one.
// For maps of whatever is kept of a block; `bytes_of` says how long it is.
#pragma once

#include <cstddef>
#include <iterator>

namespace reprise::sim {

// The entry in which all of these bytes lie; the end: there is none.
template <class Map, class BytesOf>
auto holder_of(Map& blocks, const std::byte* begin, std::size_t bytes, BytesOf&& bytes_of) {
  const auto after = blocks.upper_bound(begin);
  if (after == blocks.begin()) return blocks.end();
  const auto at = std::prev(after);
  const auto offset = static_cast<std::size_t>(begin - at->first);
  const std::size_t size = bytes_of(at->second);
  return offset <= size && bytes <= size - offset ? at : blocks.end();
}

// Whether one of these bytes lies in a block.
template <class Map, class BytesOf>
bool any_lies_in(const Map& blocks, const std::byte* begin, std::size_t bytes, BytesOf&& bytes_of) {
  const auto after = blocks.upper_bound(begin);
  if (after != blocks.end() && after->first < begin + bytes) return true;
  if (after == blocks.begin()) return false;
  const auto at = std::prev(after);
  return begin < at->first + bytes_of(at->second);
}

}  // namespace reprise::sim
