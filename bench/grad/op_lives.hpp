// Many ops that are made, run and destroyed: nothing of them may be left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "bench/measure/held_bytes.hpp"
#include "bench/measure/progress.hpp"
#include "reprise/device/memory.hpp"

namespace reprise::bench {

// What lists that ops are in hold.
struct list_lengths {
  std::size_t listed_ops = 0;    // by grad_metrics
  std::size_t frames = 0;        // of the ops that live
  std::size_t pools = 0;         // of frames, and of results
  std::size_t budget_bytes = 0;  // charged
};

struct op_lives_report {
  int ops = 0;  // of one generation, all at once
  list_lengths alive;
  list_lengths at_end;  // when the second generation has gone
  // A forward and a backward of each.
  std::uint64_t captured_forwards = 0;
  std::uint64_t captured_backwards = 0;
  held_bytes before;  // when the first generation has gone
  held_bytes after;   // and the second
  bool device_is_apart = false;
  bool process_is_held = true;  // bench/cache/cycles.hpp says why it need not be

  // From the first look to the end; 0 where there is less, or nothing is known.
  std::size_t process_growth() const;
  std::size_t device_growth() const;
  std::size_t own_growth() const;
  // One line; empty when every list is empty again and nothing grew by more than the limit.
  std::string failure() const;
};

op_lives_report run_op_lives(pool& memory, stream_ref stream, int ops, const progress& tell);

}  // namespace reprise::bench
