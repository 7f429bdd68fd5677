// One try of a search for the work at which a replay fails (bisect.hpp): one replay of this process
// runs the first works of its graph, and the process ends with whether the device outlived that.
//
// The variable REPRISE_BISECT says so: WORKS:REPLAY:STEP. Of the replays of that step, whichever of
// its recordings they are of, that one runs with only the first so many kernels, copies and fills
// on, in the order of their capture; those before it run whole. The device is waited for after each
// replay, and after that one the process exits with `outlived`, or with `failed` as soon as one
// fails. `all` works and no step: every recording, and no end but a failure.
//
// REPRISE_BISECT_LIST names a file to which recordings add their works, and replays that they begin
// and are passed, a line each, so that one in which the process dies is known: it has begun and is
// not passed. For this room's .cpp files; recordings of several threads may have one each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "reprise/device/graph.hpp"

namespace reprise {

class replay_prefix {
 public:
  static constexpr int outlived = 96, failed = 97;  // exit codes

  // Whether this process is such a try. What is launched is then nobody else's to switch, and no
  // other executable runs in its place: works behind the prefix could come back by that.
  static bool is_tried();

  // Null: nothing was asked of recordings of this step. Else its works are listed. `driven`:
  // kernels switch some, so that the host can switch none, which is listed too, and it replays
  // whole.
  static std::unique_ptr<replay_prefix> of(const std::string& step, const graph& captured,
                                           bool driven);

  // A replay of this executable begins: that is listed, since the process may end in it. Works
  // behind the prefix go off, where it is the one.
  void begins(executable_ref launched);
  // It is enqueued. Waits for it, and ends the process when it was the last one, or failed.
  void launched(site at);

 private:
  replay_prefix(std::string step, std::uint64_t recording);

  std::string step_;
  std::uint64_t recording_;      // of that step, from 1
  std::uint64_t replay_ = 0;     // that runs, of all of that step
  std::vector<node_id> behind_;  // the prefix
};

}  // namespace reprise
