// Fills of 1, 2 and 4 byte patterns. For this room's .cpp files.
//
// The runtime sets bytes only. For wider patterns the driver's own functions are used, not a kernel
// of ours: a captured fill is then a memset node, whose parameters can be changed and which can be
// toggled like any other, and no module has to be loaded for it. They are asked for by name at run
// time, since libcuda is not linked.
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include "reprise/device/work.hpp"

namespace reprise::cuda {

class fill_functions {
 public:
  // Before the first run.
  cudaError_t find() noexcept;

  // Enqueues or captures. The context must be bound to the thread. The fill is well formed.
  cudaError_t run(const fill_call& fill, cudaStream_t stream) const noexcept;

 private:
  PFN_cuMemsetD16Async_v3020 set16_ = nullptr;
  PFN_cuMemsetD32Async_v3020 set32_ = nullptr;
};

// The shortest pattern that repeats to the same bytes: what is enqueued, and so what a node is.
fill_call shortened(fill_call fill);

// Whether the pattern has 1, 2 or 4 bytes, fits the length a whole number of times, and its target
// is aligned for it, as the driver demands.
bool well_formed(const fill_call& fill);

}  // namespace reprise::cuda
