// Replays that are checked as they go: each replayed step also runs eagerly, on the state from
// before, and every byte that it writes is compared.
//
// An alarm for runs that can afford it, not the reference of a test: that is a separate plain run.
// The host waits for the device several times per step. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "reprise/replay/eager.hpp"

namespace reprise {

struct verification {
  std::uint64_t steps = 0;
  std::uint64_t unequal = 0;
  std::string first;  // which step, what and where, of the first that was unequal

  // Host time from the call until the device was done, summed over the steps.
  double replay_us = 0;
  double eager_us = 0;
};

class verifier {
 public:
  explicit verifier(device_ref device) : copies_{device, "verification"}, eager_{device} {}

  // Calls `replay`, which runs the step's recording, then puts back what the step writes, runs it
  // eagerly and compares outputs, state and overwrites. Leaves what the eager run wrote.
  step_result check(site at, const step& what, bindings given,
                    const std::function<step_result()>& replay);

  const verification& report() const { return report_; }
  std::size_t bytes() const { return copies_.bytes() + eager_.bytes(); }

 private:
  void compare(const std::string& step, const std::string& name,
               const std::vector<std::byte>& replayed, const std::vector<std::byte>& eager);

  pool copies_;
  eager_runner eager_;
  verification report_;
  bool step_equal_ = true;
};

}  // namespace reprise
