// What a monitor may be told when it is made. Every bound has a default; nothing grows past them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace reprise {

// How bytes leave the ring: by the copy engine, by a kernel on the drain's stream that stores to
// pinned memory, or by what is measured to be faster for rounds of that size.
enum class drain_way : std::uint8_t { measured, copy_engine, kernel };

struct monitor_options {
  std::uint64_t run = 0;                  // number of the run, in every record
  std::string run_name{};                 // what sinks are opened with; empty: the number
  std::size_t ring_bytes = 256U << 20;    // of device memory, a multiple of 16
  std::size_t slots = 16'384;             // publications that are promised at once
  std::size_t staging_bytes = 64U << 20;  // of pinned memory; no step publishes more
  std::size_t flights = 64;               // launches that are not drained yet
  std::size_t most_points = 512;          // of one step
  std::size_t most_runs = 1'024;          // of rows, over all tables of one step
  bool drop_when_full = false;            // else whoever runs the step waits, but not for ever
  std::int64_t wait_limit_ms = 10'000;
  // A step whose rows never fit runs eagerly, point by point; false: it is refused.
  bool allow_eager_fallback = true;
  // A thread of its own drains; false: whoever waits or flushes does.
  bool thread = true;
  // Producers run in the model's line instead of beside it.
  bool in_line = false;
  drain_way drain_by = drain_way::measured;
  // Each payload begins with what its producer believes to be; a record whose label says otherwise
  // is a fault. For tests.
  bool markers = false;
};

}  // namespace reprise
