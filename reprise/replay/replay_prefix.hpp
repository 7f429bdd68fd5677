// One try of a search for the work at which a replay fails (bisect.hpp): replays of this process
// run the first works of their graph, and the process ends with whether the device outlived that.
//
// The variable REPRISE_BISECT says so: WORKS:REPLAYS:STEP. The first so many kernels, copies and
// fills of the recordings of that step are on, in the order of their capture; the device is waited
// for after each replay, and after that many of them the process exits with `outlived`, or with
// `failed` as soon as one fails. `all` works and no step: every recording, and no end but a
// failure. REPRISE_BISECT_LIST names a file to which each recording adds its works, and a replay
// that fails itself. For this room's .cpp files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "reprise/device/graph.hpp"

namespace reprise {

class replay_prefix {
 public:
  static constexpr int outlived = 96, failed = 97;  // exit codes

  // Null: nothing was asked of recordings of this step. Else its works are listed, and those behind
  // the prefix are off.
  static std::unique_ptr<replay_prefix> of(const std::string& step, const graph& captured,
                                           const executable& made);

  // A replay begins: that is listed, since the process may end in it.
  void begins();
  // It is enqueued. Waits for it, and ends the process when it was the last one, or failed.
  void launched(site at);

 private:
  replay_prefix(std::string step, std::uint64_t replays);

  std::string step_;
  std::uint64_t most_;  // 0: no end
  std::uint64_t replays_ = 0;
};

}  // namespace reprise
