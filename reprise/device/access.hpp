// What a piece of work says that it touches, and what a kernel's body was seen to touch. The same
// in both compiles of a body (base/portable.hpp), since it passes the seam.
#pragma once

#include <cstddef>

namespace reprise {

// One span that a piece of work touches.
struct access {
  const void* begin = nullptr;
  std::size_t bytes = 0;
  bool writes = false;
  // `begin` is a word of device memory; the span begins where it points when the work runs.
  bool indirect = false;
};

// Bytes at `begin` itself.
constexpr std::size_t bytes_at_begin(const access& one) {
  return one.indirect ? sizeof(void*) : one.bytes;
}

// Bytes that a body did touch: touch_log.hpp.
struct touched_range {
  const std::byte* begin = nullptr;
  std::size_t bytes = 0;
  bool writes = false;
  bool operator==(const touched_range&) const = default;
};

}  // namespace reprise
