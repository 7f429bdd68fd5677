// A recording: what is replayed, with everything it touches, and the contract under which it is
// right.
//
// It is a list of segments: an executable each, and between two of them a break, which runs
// eagerly. It owns its static memory, its pool and its pinned slots until its last replay has
// finished, and it is the unit of order: a replay on another stream waits for the one before. One
// thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include "reprise/device/graph.hpp"
#include "reprise/replay/contract.hpp"
#include "reprise/replay/lease.hpp"

namespace reprise {

class step;

// Who holds what of a recording.
struct recording_bytes {
  std::size_t buffers = 0;      // device memory of its pool, but for workspaces
  std::size_t workspaces = 0;   // scratch of its kernels
  std::size_t pinned = 0;       // host memory that brings its inputs
  std::size_t executables = 0;  // what the driver holds for its nodes: an estimate, see the seam

  std::size_t total() const { return buffers + workspaces + pinned + executables; }
};

// Where the time of recording went, in milliseconds of the host.
struct recording_phases {
  double warm_up = 0;
  double capture = 0;
  double instantiation = 0;
  double first_replay = 0;

  double total() const { return warm_up + capture + instantiation + first_replay; }
};

// A break, and what it costs the host at each replay.
struct break_cost {
  std::string why;
  std::uint64_t runs = 0;
  double mean_us = 0;
};

// An input that was declared direct and has a reader that cannot follow a word.
struct staged_after_all {
  std::string input;
  std::string reader;  // "kernel 'matmul'"
};

class recording {
 public:
  recording(recording&&) noexcept;
  recording& operator=(recording&&) noexcept;
  // Waits for its last replay; a cache retires it first, so that nothing waits.
  ~recording();

  const contract& terms() const;
  std::size_t nodes() const;
  // Executables; none: a debug recording, whose body is one break.
  std::size_t segments() const;
  std::vector<break_cost> breaks() const;
  recording_bytes bytes_by_owner() const;
  std::size_t bytes() const { return bytes_by_owner().total(); }
  const recording_phases& phases() const;
  const std::vector<staged_after_all>& staged_inputs() const;
  std::uint64_t replays() const;
  std::uint64_t staging_waits() const;
  // Random numbers that one replay draws.
  std::uint64_t draws() const;
  // Replays with host inputs that can be queued before one waits; 0: it reads no host inputs
  // itself.
  std::size_t staging_slots() const;

  // Why a replay has to leave the outputs of the last one alone; null: it need not.
  std::shared_ptr<const reason> outputs_held() const;
  // What observers that are in its graph say: why the step has to run eagerly this time; null: they
  // have made room for one replay, which follows. It may wait, as they say.
  std::shared_ptr<const reason> make_room(site at);

  // `what` is the step that was recorded, or another of the same work; the bindings passed its
  // signature's check. Nothing when the terms do not hold, or an output is held: ask for the
  // reason, and run the step eagerly. Earlier leases are void before the first byte is written.
  std::optional<step_result> replay(site at, const step& what, bindings given);
  // The same for a caller that has just seen, on this thread, that the terms fit and hold and no
  // output is held: a replay reads every fact once.
  step_result replay_as_checked(site at, const step& what, bindings given);

  // Moves what is held of the last replay's outputs, and declared on_overwrite::move_aside, to
  // memory of its own now, in the order of `at`; without such it calls no device.
  void move_held_aside(site at);

  // Whether one of these lies in its memory, as an output of its last replay does.
  bool has(bindings given) const;
  // A direct input that lies in its own memory, which a replay would write over while it reads;
  // null: there is none.
  std::shared_ptr<const reason> overlaps(const step& what, bindings given) const;

  // Marks the end of the last replay; `retired` says when it has passed, without waiting.
  void retire(std::source_location place);
  bool retired(std::source_location place) const;

  // The host waits for the last replay.
  void synchronize(std::source_location place) const;
  // The stream of the last replay.
  stream_id last_stream() const;

 private:
  friend class recorder;
  friend class first_run;
  struct state;
  explicit recording(std::unique_ptr<state> owned);

  std::unique_ptr<state> state_;
};

}  // namespace reprise
