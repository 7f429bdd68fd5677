// Recording as one transaction: all of it, or no trace.
//
// Snapshot, warm-up, capture, instantiation with upload, first replay. Whatever fails before the
// first replay is enqueued is undone to the bytes, state and streams from before the call; then the
// step runs eagerly, and the reason says what failed. An error that the eager run raises too is the
// caller's own.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "reprise/replay/eager.hpp"
#include "reprise/replay/recording.hpp"

namespace reprise {

struct recorded {
  step_result first;  // the step has run, whatever became of the recording
  std::optional<recording> made;
};

// One capture at a time per process: a second thread waits. Owns the stream on which warm-ups and
// captures run. One thread at a time.
class recorder {
 public:
  // `fallback` outlives the recorder.
  recorder(device_ref device, eager_runner& fallback);

  // The bindings passed signature::check.
  recorded record(site at, const step& what, bindings given);

 private:
  recording make(site at, const step& what, bindings given, std::string_view& phase);
  struct taken {
    std::size_t bytes = 0;
    std::uint64_t draws = 0;
  };
  taken warm_up(site side, const step& what, bindings given, recording::state& state);

  device_ref device_;
  eager_runner& fallback_;
  stream side_;
  event crossing_;
};

}  // namespace reprise
