// One recording that is being made: what the recorder's parts share. For this room's .cpp files.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string_view>

#include "reprise/base/mutex.hpp"
#include "reprise/replay/recorder.hpp"
#include "reprise/replay/recording_state.hpp"
#include "reprise/replay/run_body.hpp"

namespace reprise {

// Thrown where an admission says no.
struct not_admitted {
  std::shared_ptr<const reason> why;
};

struct recorder::job {
  site at;    // the caller's
  site side;  // where warm-ups and captures run
  const step& what;
  bindings given;
  const recorder_options& options;
  bool is_prepared;  // nothing runs for real

  run_needs needs{};             // what a warm-up learns
  bool has_run = false;          // they are known: nothing is warmed up
  std::size_t staged_bytes = 0;  // of the block of inputs
  std::size_t ring_bytes = 0;    // of what brings them
  std::byte* ring_words = nullptr;
  bool has_breaks = false;
  bool has_ring = false;  // the recording brings its own inputs
  bool in_break = false;  // what is thrown there is the step's own error
  bool refused = false;   // an observer refuses the step
  std::string_view phase = "preparation";
  std::unique_lock<mutex> lock{};  // of the one capture per process; not held in a break

  std::size_t block_bytes() const { return needs.bytes + staged_bytes + ring_bytes; }

  void admit(const recording_bytes& needs_now) const {
    if (!options.admit) return;
    if (auto why = options.admit(needs_now)) throw not_admitted{std::move(why)};
  }
  // Before any of it is taken.
  void admit_memory(const recording::state& state) const {
    recording_bytes bytes;
    bytes.workspaces = needs.workspaces;
    bytes.buffers = block_bytes() - needs.workspaces;
    if (has_ring) bytes.pinned = input_ring::pinned_bytes(state.layout);
    admit(bytes);
  }
};

// When making a recording fails, the host waits for the stream before anything it uses is given
// back, and so that what the caller enqueues next comes after the state was put back.
class settle_on_failure {
 public:
  explicit settle_on_failure(stream_ref side) : side_{side} {}
  ~settle_on_failure() {
    if (std::uncaught_exceptions() == before_) return;
    try {
      side_.synchronize();
    } catch (const error& failed) {
      report_error(failed.what());
    }
  }
  settle_on_failure(const settle_on_failure&) = delete;
  settle_on_failure& operator=(const settle_on_failure&) = delete;

 private:
  stream_ref side_;
  int before_ = std::uncaught_exceptions();
};

}  // namespace reprise
