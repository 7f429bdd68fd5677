// What a graph touches beside the memory of its own recording: weights, state, tables that a body
// refers to. Seen as the works are captured, so it is what the graph has baked in; its contract
// depends on it from that moment on.
#pragma once

#include <string>

#include "reprise/device/enqueue.hpp"
#include "reprise/replay/contract.hpp"
#include "reprise/replay/run_memory.hpp"
#include "reprise/replay/signature.hpp"

namespace reprise {

// Looks on at what this thread captures while it lives. All references outlive it.
class touched_by_capture {
 public:
  touched_by_capture(const signature& declared, const run_memory& own, contract& terms);

 private:
  void see(device_ref device, const work& what);
  std::string name_of_span(const work& by, const access& touched) const;

  const signature& declared_;
  const run_memory& own_;
  contract& terms_;
  submission_watch watch_;
};

}  // namespace reprise
