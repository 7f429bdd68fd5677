// Makes the calls of a trace again on another device, with blocks of its own of the same sizes.
//
// Kernels, host calls and external work become bodies that touch exactly what the trace says was
// touched: what was read is read, what was written gets a pattern. Streams, events, captures,
// graphs, executables, switches and updates are made again as they were. So a trace that was taken
// on a real GPU can be looked at where races and lifetimes are checked, without model or data.
//
// All calls are made on the calling thread, in the order of the trace; what the trace left open is
// closed at the end. Memory that was released is never touched: such a use is reported, and the
// work or launch is left out. Which thread made a call and how long it took is not made again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/device/api.hpp"
#include "reprise/trace/trace.hpp"

namespace reprise {

// What becomes of calls that failed when the trace was taken.
enum class failed_calls : std::uint8_t {
  expect,     // made again; one that succeeds, or fails otherwise, is a difference
  leave_out,  // not made: the failures were of that device and not of the calls
};

struct rerun_options {
  failed_calls failed = failed_calls::expect;
  // Of blocks and host memory at once. A trace may come from a card larger than this machine.
  std::uint64_t most_bytes = std::uint64_t{8} << 30;
};

enum class difference_kind : std::uint8_t {
  fails_now,          // and did not in the trace
  succeeds_now,       // and did not in the trace
  fails_otherwise,    // with another kind of error
  answers_otherwise,  // capturing, precedes or update
  dead_handle,        // names what was destroyed, or never made; yet succeeded in the trace
  dead_memory,        // touches or releases a block that was released, or never allocated
  beyond_memory,      // touches bytes past the end of a block
};
inline constexpr std::size_t difference_kinds = 7;

std::string_view name_of(difference_kind kind);

struct difference {
  std::size_t call = 0;  // 1 is the first of the trace
  difference_kind kind = difference_kind::fails_now;
  std::string text;  // one line: the call, what is wrong with it, what to do
};

struct rerun_report {
  std::size_t calls = 0;                // that were made
  std::vector<difference> differences;  // in the order of the trace

  std::string text() const;  // a line each; empty when there is none
};

// Throws usage_error when the device does not run CPU bodies: the bodies of a re-run are such.
rerun_report rerun(const trace& what, device_api& on, const rerun_options& options = {});

}  // namespace reprise
