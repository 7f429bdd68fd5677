// A work that outlives its call: what a captured node keeps.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "reprise/device/cpu_call.hpp"
#include "reprise/device/work.hpp"

namespace reprise::sim {

// Owns everything that the work borrowed. Immutable once made, so executables share it.
class stored_work {
 public:
  explicit stored_work(const work& from);
  // The work, pointing into this object.
  work borrow() const;

 private:
  work shape_;  // scalars and kinds; its borrowed parts are replaced in borrow()
  std::string label_;
  std::vector<access> accesses_;
  struct alignas(16) chunk {
    std::byte bytes[16];
  };
  std::vector<chunk> arguments_;
  std::function<void()> on_host_;
  std::function<void(void*)> on_stream_;
};

// Runs a kernel, copy, fill, host call or external work on the calling thread, and returns when it
// is done. Events are the device's business.
void run_now(const work& what, worker_ref workers);

}  // namespace reprise::sim
