// Who holds the memory of a device, as a table. Bytes of pools and pinned blocks are exact; what
// the driver holds for executables is an estimate, nodes times a figure that the device calibrates
// at the first question, which takes some milliseconds on a GPU and refuses nothing.
#pragma once

#include <cstddef>
#include <source_location>
#include <string>
#include <vector>

#include "reprise/device/device.hpp"

namespace reprise {

struct pool_figures {
  std::string label;
  std::size_t bytes = 0;  // of slabs held
  std::size_t used = 0;   // of live blocks
};

struct memory_report {
  std::vector<pool_figures> pools;
  std::size_t idle_slabs = 0;  // bytes that no pool leases; trim() returns them
  std::size_t pinned = 0;      // bytes of the host
  std::size_t executables = 0;
  std::size_t executable_nodes = 0;
  std::size_t executables_estimate = 0;  // bytes, of the driver
  memory_figures device;                 // the whole device, all users of it

  // Device bytes that this table explains.
  std::size_t explained() const {
    std::size_t total = idle_slabs + executables_estimate;
    for (const pool_figures& p : pools) total += p.bytes;
    return total;
  }
  // In use on the device and not explained: the context, other libraries and processes.
  std::size_t unexplained() const {
    const std::size_t used = device.total - device.free;
    return used > explained() ? used - explained() : 0;
  }
};

// Thread safe; pools in no particular order. Throws device_error when the device does not answer.
memory_report report_memory(device_ref device,
                            std::source_location from = std::source_location::current());

}  // namespace reprise
