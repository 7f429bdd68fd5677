// What a graphed op has done, counted.
//
// Each forward is captured, shared (its recording was made by another op of the same work),
// replayed, eager by one cause, or was refused by an error. Each backward is captured (its first:
// eager on the static state, recorded behind), replayed, or eager by one cause; that of an eager
// forward is eager by the same cause.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace reprise {

enum class eager_cause : std::uint8_t {
  key,             // other shapes, scalars, absent arguments, precision, or a fact that changed
  capture_failed,  // the capture of the forward failed, or did not fit the budget
  released,        // its frame was given back when memory ran out
  backward,        // the capture of the backward failed
  precision,       // the products in force differ from those of the backward's capture
  suspended,       // or inside another capture, or recording is off
  hold,            // a backward is owed
  observed,        // somebody is told of its marks
};
inline constexpr std::size_t eager_causes = 8;
std::string_view name_of(eager_cause cause);

struct grad_counts {
  std::uint64_t forward_capture = 0;
  std::uint64_t forward_shared = 0;
  std::uint64_t forward_replay = 0;
  std::uint64_t backward_capture = 0;
  std::uint64_t backward_replay = 0;
  std::uint64_t stale_replay = 0;   // forwards replayed again for their backward
  std::uint64_t stale_by_pool = 0;  // of these: another op's replay in the pool was the cause
  std::uint64_t inference = 0;      // calls that cannot need a backward
  double stale_us = 0;              // of the host, in stale replays
  std::array<std::uint64_t, eager_causes> eager_forward{};
  std::array<std::uint64_t, eager_causes> eager_backward{};

  grad_counts& operator+=(const grad_counts& other);
  // What has come since `before`, which is of the same ops.
  grad_counts& operator-=(const grad_counts& before);

  std::uint64_t eager_forwards() const;
  std::uint64_t eager_backwards() const;
  std::uint64_t forwards() const {
    return forward_capture + forward_shared + forward_replay + eager_forwards();
  }
  std::uint64_t backwards() const { return backward_capture + backward_replay + eager_backwards(); }
};

// "12 forwards: 1 captured, 9 replayed, 2 eager (hold 2); …", for people.
std::string text_of(const grad_counts& counts);

}  // namespace reprise
