// Recording as one transaction: all of it, or no trace.
//
// Snapshot, warm-up, capture, instantiation with upload, first replay. Whatever fails before the
// first replay is enqueued is undone to the bytes, state and streams from before the call; then the
// step runs eagerly, and the reason says what failed. An error that the eager run raises too is the
// caller's own.
//
// A step with breaks is recorded by running it once, segment by segment, since a break cannot be
// rehearsed. When that fails behind a break, state is put back all the same, and the eager run
// takes the breaks again.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>

#include "reprise/base/mutex.hpp"
#include "reprise/replay/eager.hpp"
#include "reprise/replay/recording.hpp"
#include "reprise/replay/run_memory.hpp"

namespace reprise {

struct recorded {
  step_result first;  // the step has run, whatever became of the recording
  // Made where the first run is captured; and where observers had no room for that run alone.
  std::optional<recording> made;
};

struct prepared {
  std::optional<recording> made;
  std::shared_ptr<const reason> why_not;  // null when made
};

// Asked with what a recording needs as far as it is known by then: its memory, before that is
// taken, and its executables too, before they are made. Null lets it go on; a reason stops it
// there.
using admission = std::function<std::shared_ptr<const reason>(const recording_bytes& needs)>;

// Gives a recording its memory: `kept` bytes that last until its next replay, `scratch` that only
// its body uses, and `own`, where it counts its replays. What recordings that take turns may share,
// but for `own`, is the giver's to know. It is in the order of the caller's stream, and outlives
// the recording; a reason that there is none is thrown.
using placement =
    std::function<placed_memory(std::size_t kept, std::size_t scratch, std::size_t own)>;

struct recorder_options {
  admission admit;       // empty: everything is admitted
  placement place{};     // empty: memory of its own; else a step with breaks is not recorded
  bool debug = false;    // the whole body is one break: nothing is captured, all else is as ever
  bool branches = true;  // what a body enqueues aside is a branch of the graph
  // Told of the marks of the body that is captured, whose works are in the graph; and the word that
  // tells such a recording from others. They outlive the call.
  std::span<const std::shared_ptr<mark_observer>> watching{};
  std::uint64_t observed = 0;
};

// One capture at a time per process: a second thread waits. Owns the stream on which warm-ups and
// captures run. One thread at a time.
class recorder {
 public:
  // `fallback` outlives the recorder.
  recorder(device_ref device, eager_runner& fallback);

  // The bindings passed signature::check.
  recorded record(site at, const step& what, bindings given, const recorder_options& options = {});
  // Records without running the step: the inputs stand for their shapes, and the warm-up puts back
  // overwrites too. A step with breaks cannot be prepared.
  prepared prepare(site at, const step& what, bindings like, const recorder_options& options = {});
  // Records a step that has just run for real, and took this; nothing runs again.
  prepared record_behind(site at, const step& what, bindings like, const run_needs& took,
                         const recorder_options& options = {});

 private:
  friend class first_run;
  struct job;
  using state_ptr = std::unique_ptr<recording::state>;

  state_ptr begin(job& now);
  prepared prepare(job& now);
  void warm_up(job& now, recording::state& state);
  void rehearse(job& now, recording::state& state);
  void reserve_for_eager_runs(const job& now, const recording::state& state);
  bool stage_after_all(job& now, recording::state& state, const direct_refused& refused);
  void place_memory(job& now, recording::state& state);
  void capture_whole(job& now, recording::state& state);

  device_ref device_;
  eager_runner& fallback_;
  stream side_;
  event crossing_;
  aside_branch beside_;  // of a capture
};

}  // namespace reprise
