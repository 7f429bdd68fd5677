// Whether two runs left the same bits, without keeping both: one number for all bytes of a tensor.
#pragma once

#include <cstdint>

#include "reprise/device/device.hpp"
#include "reprise/device/tensor.hpp"

namespace reprise::bench {

// Of a contiguous tensor of the device, behind what `so_far` is of; waits for the stream. Every bit
// and its place count. For finding faults, not for those who want two tensors to look the same.
std::uint64_t digest_of(stream_ref stream, const tensor_ref& what, std::uint64_t so_far);

}  // namespace reprise::bench
