// What the driver takes of the device's memory for one kernel node of an executable. For this
// room's .cpp files.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace reprise::cuda {

// Makes executables of a few thousand empty kernels until the free memory has moved, and takes the
// quotient, at least 1. The figure is of the current device. Some milliseconds.
cudaError_t calibrate_nodes(std::size_t& bytes_per_node);

}  // namespace reprise::cuda
