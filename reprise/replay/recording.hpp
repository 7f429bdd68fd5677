// A recording: an executable with everything it touches, and the contract under which it is right.
//
// It owns its static memory, its pool and its pinned slots until its last replay has finished. It
// is the unit of order: a replay on another stream waits for the one before. One thread at a time.
#pragma once

#include <memory>
#include <optional>
#include <source_location>

#include "reprise/device/graph.hpp"
#include "reprise/replay/contract.hpp"
#include "reprise/replay/lease.hpp"
#include "reprise/replay/run_memory.hpp"
#include "reprise/replay/staging.hpp"
#include "reprise/replay/stream_order.hpp"

namespace reprise {

class recording {
 public:
  recording(recording&&) noexcept;
  recording& operator=(recording&&) noexcept;
  // Waits for its last replay; a cache retires it first, so that nothing waits.
  ~recording();

  const contract& terms() const;
  std::size_t nodes() const;
  std::size_t bytes() const;  // device and pinned memory, exact
  std::uint64_t staging_waits() const;
  // Replays with host inputs that can be queued before one waits; 0: it reads no host inputs
  // itself.
  std::size_t staging_slots() const;

  // The bindings passed signature::check. Nothing when the terms do not hold: ask them why, and run
  // the step eagerly. Earlier leases are void before the first byte is written.
  std::optional<step_result> replay(site at, bindings given);
  // The same for a caller that has just seen, on this thread, that the terms fit and hold: a replay
  // reads every fact once.
  step_result replay_as_checked(site at, bindings given);

  // Marks the end of the last replay; `retired` says when it has passed, without waiting.
  void retire(std::source_location place);
  bool retired(std::source_location place) const;

  // The host waits for the last replay.
  void synchronize(std::source_location place) const;

 private:
  friend class recorder;
  struct state;
  explicit recording(std::unique_ptr<state> owned);

  std::unique_ptr<state> state_;
};

}  // namespace reprise
