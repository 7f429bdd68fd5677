// What is held at one moment with nothing queued, for runs after which memory has to be where it
// was.
#pragma once

#include <cstddef>

#include "reprise/device/device.hpp"

namespace reprise::bench {

inline constexpr std::size_t growth_limit = std::size_t{2} << 20;

// In bytes.
struct held_bytes {
  std::size_t process = 0;  // resident
  std::size_t device = 0;   // in use on the whole device, by whomever
  std::size_t own = 0;      // slabs and pinned blocks that this library holds
  std::size_t budget = 0;   // charged
};

// Waits for the stream, and asks. What is charged to a budget is the caller's to fill in.
held_bytes held_now(stream_ref stream);

// 0 where there is less after.
constexpr std::size_t grown(std::size_t before, std::size_t after) {
  return after > before ? after - before : 0;
}

}  // namespace reprise::bench
