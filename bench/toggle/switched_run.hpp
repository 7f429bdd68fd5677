// One way of switching the taps of a step: through a cache and a monitor of its own, with all
// counted that says whether its figures are of what they are called.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/tap/layered_step.hpp"
#include "reprise/replay/cache.hpp"
#include "reprise/tap/monitor.hpp"

namespace reprise::bench {

// Some of the points of a layered_step, ready to be enabled.
struct layer_set {
  explicit layer_set(std::vector<bool> of);

  std::vector<bool> on;  // by layer
  std::size_t count = 0;
  point_set points;
};

struct switched_counts {
  std::string what;
  toggle_mode mode = toggle_mode::automatic;
  std::uint64_t points = 0;
  std::uint64_t calls = 0;
  std::uint64_t eager = 0;
  std::uint64_t measured = 0;  // calls
  std::uint64_t replayed = 0;  // of those measured

  std::uint64_t expected = 0;  // publications: of each call those that were on
  std::uint64_t planned = 0;
  std::uint64_t published = 0;
  std::uint64_t lost = 0;
  std::uint64_t dropped = 0;
  std::uint64_t waits = 0;  // for room
  std::uint64_t seen = 0;
  std::uint64_t misplaced = 0;  // points that were seen more, or less, often than they were on
  std::uint64_t compared = 0;
  std::uint64_t compared_expected = 0;
  std::uint64_t wrong = 0;
  bool equal = true;  // each output that was looked at is right

  // Of the calls that were timed: nodes switched, copies and executables made.
  std::uint64_t driver_calls = 0;
  std::uint64_t driver_calls_planned = 0;
  std::uint64_t repaired = 0;  // calls that were timed and are no figure, as timed_call says
  toggle_counts switched;      // of all calls

  // One line; empty when every call ran as planned, took just the records of its set, and gave the
  // right bits.
  std::string failure() const;
};

// One thread at a time. Without a call of enable all points are on.
class switched_run {
 public:
  // `of`, its owner and the stream outlive it.
  switched_run(std::string what, stream_ref stream, const layered_step& of, int points,
               std::size_t residual_bytes, toggle_mode mode);
  ~switched_run();
  switched_run(const switched_run&) = delete;
  switched_run& operator=(const switched_run&) = delete;

  void enable(const layer_set& set);
  void call();
  // Host microseconds of one call that takes so many calls of the driver, beside the launch.
  // Nothing where the session instantiated an executable anew in it, since switching had slowed
  // the old one: what is off is switched off in that, and all of these calls are meant too.
  std::optional<double> timed_call(std::uint64_t driver_calls);
  // The same, with the change ahead of it in the time.
  std::optional<double> timed_change(const layer_set& set, std::uint64_t driver_calls);
  // A call whose records and output are looked at.
  void check();
  // Calls from now on must be replays.
  void begin_measuring() { measures_ = true; }
  // Waits until the records of all calls are delivered.
  void settle() { eye_.flush(); }

  // Settles, and reads all counters.
  switched_counts finish();

 private:
  struct seen_points;

  void note_call();

  stream_ref stream_;
  marked_step of_;
  std::unique_ptr<seen_points> seen_;
  monitor eye_;
  replay_cache cache_;
  step_result last_;
  layer_set set_;
  std::vector<std::uint64_t> expected_;  // by layer
  bool measures_ = false;
  switched_counts counts_;
};

}  // namespace reprise::bench
