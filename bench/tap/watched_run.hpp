// One way of running a marked step: through a cache of its own, with a monitor or without, and
// with all counted that says whether its figures are of what they are called.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "bench/tap/checking_sink.hpp"
#include "bench/tap/marked_step.hpp"
#include "reprise/replay/cache.hpp"
#include "reprise/tap/monitor.hpp"

namespace reprise::bench {

struct watched_counts {
  std::string what;
  std::uint64_t calls = 0;
  std::uint64_t on = 0;  // calls with all points on
  std::uint64_t eager = 0;
  std::uint64_t measured = 0;  // calls
  std::uint64_t replayed = 0;  // of those measured
  bool equal = true;           // each output that was looked at is right

  std::uint64_t points = 0;  // of the step; 0 without a monitor
  std::uint64_t planned = 0;
  std::uint64_t published = 0;
  std::uint64_t dropped = 0;
  std::uint64_t lost = 0;
  std::uint64_t waits = 0;    // for room
  std::uint64_t records = 0;  // as the monitor counts them
  bool has_sink = false;
  std::uint64_t seen = 0;            // by the sink
  std::uint64_t compared_calls = 0;  // whose records were looked at
  std::uint64_t compared = 0;
  std::uint64_t wrong = 0;
  bool drops = false;  // what was planned: with a full ring, every measured call

  // One line; empty when every call ran as planned, every publication that was planned arrived, and
  // outputs and records have the right bits.
  std::string failure() const;
};

enum class sink_use : std::uint8_t { none, counts, sleeps };

// One thread at a time.
class watched_run {
 public:
  // Without options nobody watches. `of`, its owner and the stream outlive it. A sink that sleeps
  // does so until finish().
  watched_run(std::string what, stream_ref stream, marked_step of,
              std::optional<monitor_options> watched = {}, sink_use sink = sink_use::counts);
  ~watched_run();
  watched_run(const watched_run&) = delete;
  watched_run& operator=(const watched_run&) = delete;

  void call();
  // A call whose records and output are looked at.
  void check();
  // Calls until the ring is full and steps are dropped, where the sink sleeps.
  void fill();
  // No point is on from now on.
  void turn_off();
  // Calls from now on must be replays.
  void begin_measuring() { measures_ = true; }
  // Waits until the records of all calls are delivered; of a sink that sleeps nothing is.
  void settle();

  const std::string& what() const { return counts_.what; }
  // Lets the sink go, settles, and reads all counters.
  watched_counts finish();

 private:
  stream_ref stream_;
  marked_step of_;
  std::shared_ptr<seen_records> seen_ = std::make_shared<seen_records>();
  std::unique_ptr<monitor> eye_;
  replay_cache cache_;
  step_result last_;
  bool is_on_;
  bool measures_ = false;
  watched_counts counts_;
};

}  // namespace reprise::bench
