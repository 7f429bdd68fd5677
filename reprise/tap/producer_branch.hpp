// Where the producers of one capture go: on a branch of their own beside the model, which is joined
// as late as it may be.
//
// A producer reads its tensor where it lies, so whatever writes there next has to wait for it: each
// work of the capture is looked at as it is enqueued, and where its declared writes overlap a
// tensor that a producer still reads, its stream waits for that producer. All others are joined at
// the end of the body. In line they need none of this. For this room's .cpp files.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "reprise/device/enqueue.hpp"
#include "reprise/tap/tap_core.hpp"

namespace reprise {

class producer_branch {
 public:
  // Watches this thread while it lives; the core outlives it.
  producer_branch(tap_core& core, step_scope& run);

  // Where to launch what all producers wait for and which itself waits for nothing of the run;
  // once, ahead of the first of them.
  stream_ref ahead(step_scope& run);
  // Where to launch the producer of this tensor, behind all that the run has done by now.
  stream_ref begin(step_scope& run);
  // It is launched there.
  void end(const tensor_ref& reads);
  // Where to launch what is behind all producers and reads no tensor; then it is launched there.
  stream_ref behind(step_scope& run);
  void end();
  // What is enqueued on the run from here on comes behind all producers.
  void join(step_scope& run);

 private:
  struct pending {
    const std::byte* begin = nullptr;
    const std::byte* end = nullptr;
    std::size_t join = 0;  // of the core's events
  };

  void see(stream_ref stream, const work& what);

  tap_core& core_;
  stream_ref run_;
  std::vector<pending> pending_;
  std::size_t launched_ = 0;
  bool ours_ = false;
  std::optional<submission_watch> watch_;
};

}  // namespace reprise
