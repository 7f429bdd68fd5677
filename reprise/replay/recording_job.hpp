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

  // What a warm-up learns.
  struct learned {
    std::size_t block = 0;  // bytes of the run's memory
    std::size_t workspaces = 0;
    std::uint64_t draws = 0;
  };
  learned needs{};
  bool has_breaks = false;
  bool has_ring = false;  // the recording brings its own inputs
  bool in_break = false;  // what is thrown there is the step's own error
  std::string_view phase = "preparation";
  std::unique_lock<mutex> lock{};  // of the one capture per process; not held in a break

  void admit(const recording_bytes& needs_now) const {
    if (!options.admit) return;
    if (auto why = options.admit(needs_now)) throw not_admitted{std::move(why)};
  }
  // Before any of it is taken.
  void admit_memory(const recording::state& state) const {
    recording_bytes bytes;
    bytes.workspaces = needs.workspaces;
    bytes.buffers = needs.block - needs.workspaces;
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
