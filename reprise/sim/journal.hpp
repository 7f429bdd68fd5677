// What an adversarial run has seen: findings, the timeline, the trace, landmarks, counts.
//
// It outlives the device that fills it, so that leaks found at close are in it too. Read it while
// no other thread uses the device, or after the device is gone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::sim {

enum class finding_kind : std::uint8_t {
  race,               // two accesses, one a write, that nothing orders
  undeclared_access,  // a body touched what its launch did not declare
  use_after_free,     // of memory that was given back, or is no block's at all
  unwritten_read,     // of memory that nobody has written since it was taken
  stale_source,       // host memory that a work reads has died or changed under it
  leak,               // held when the device was closed
  misuse,             // a call that may not be made here: an unknown thread, a host call
  deadlock,           // a thread waits, and nothing can run
};
inline constexpr std::size_t finding_kinds = 8;

std::string_view name_of(finding_kind kind);

struct finding {
  finding_kind kind = finding_kind::race;
  std::string text;             // one line that names both parties, their streams and places
  std::size_t trace_lines = 0;  // of the trace, that led there
  bool unwinding = false;       // an exception was on its way, and took things down
};

// One work that ran, in virtual time. A work lasts one unit unless `controls` say otherwise.
struct timeline_row {
  std::string label;
  std::string stream;  // "stream 2"
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct journal {
  std::vector<finding> findings;
  std::vector<timeline_row> timeline;  // in the order in which works ran
  std::vector<std::string> trace;      // calls and works in order; the same on every machine
  std::set<std::string, std::less<>> landmarks;
  std::uint64_t operations = 0;  // works that ran
};

}  // namespace reprise::sim
