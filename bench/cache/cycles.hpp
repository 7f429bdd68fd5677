// Many captures under a byte budget, each in the place of another: memory has to stay where it was.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "bench/measure/held_bytes.hpp"
#include "bench/measure/progress.hpp"
#include "reprise/device/memory.hpp"

namespace reprise::bench {

inline constexpr std::uint64_t warm_up_cycles = 1000;

struct cycle_report {
  std::uint64_t cycles = 0;
  std::uint64_t warm = 0;  // of them before the first look: a thousand, or half of fewer
  std::uint64_t captured = 0;
  std::uint64_t evicted = 0;
  std::uint64_t kept = 0;  // recordings at the end
  // Whether the device has memory of its own; else what it has in use is that of the whole host,
  // and says nothing.
  bool device_is_apart = false;
  // Whether the process may not grow. A simulated GPU notes in it what it has run, and has all the
  // notes that it keeps after some thousand cycles.
  bool process_is_held = true;
  held_bytes after_warm_up;
  held_bytes at_end;

  // From the first look to the end; 0 where there is less at the end, or nothing is known.
  std::size_t process_growth() const;
  std::size_t device_growth() const;
  std::size_t own_growth() const;
  // One line; empty when each cycle recorded and nothing grew by more than the limit.
  std::string failure() const;
};

cycle_report run_cycles(pool& memory, stream_ref stream, std::int64_t nodes, std::uint64_t cycles,
                        const progress& tell);

}  // namespace reprise::bench
