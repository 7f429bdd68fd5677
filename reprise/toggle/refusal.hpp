// A launch that a session stopped: nothing was enqueued, and the message says how to recover.
//
// Thrown out of the launch itself, so that whoever watches a step can tell it from a device that
// fails: it runs the step eagerly, unwatched, and says so once.
#pragma once

#include <cstdint>
#include <string>

#include "reprise/device/gate.hpp"

namespace reprise {

enum class refused : std::uint8_t {
  unbound,        // it has works of this session that no binding names: bind it
  stale,          // it was recorded in an earlier session of this owner: record it again
  not_applied,    // a change failed half-way, what is on is known, and the next launch tries again
  session_ended,  // the second failure: all was restored, and the session is over
  unknown_state,  // restoring failed too: what is on is not known, and it is never launched again
};

class switch_refusal : public launch_refused {
 public:
  switch_refusal(refused why, const std::string& message) : launch_refused{message}, why_{why} {}
  refused why() const noexcept { return why_; }

 private:
  refused why_;
};

}  // namespace reprise
