// Inputs that stand for their shapes when a step is recorded ahead of time: zeros. For this room's
// .cpp files.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "reprise/device/memory.hpp"
#include "reprise/replay/signature.hpp"

namespace reprise {

// Those that a recording copies lie in host memory, so that it has what it takes to bring such
// inputs itself; direct ones lie on the device.
class stand_in_inputs {
 public:
  // One shape for each input. Throws usage_error where one leaves an extent open.
  stand_in_inputs(site at, const signature& declared, std::span<const dims> shapes);

  bindings given() const { return {std::span<const binding>{given_}}; }

 private:
  pool zeros_;
  std::vector<block> on_device_;
  std::vector<std::vector<std::byte>> on_host_;
  std::vector<binding> given_;
};

}  // namespace reprise
