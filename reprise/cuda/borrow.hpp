// The open door: streams, graphs and executables that somebody else made with CUDA, used through
// Reprise. Beside cuda/call.cuh the only public header with CUDA types; absent from a build without
// CUDA.
//
// What is borrowed is never destroyed here, and its owner keeps it alive for as long as it is used:
// a stream until it is given back or the device closes, a graph as long as works of it are
// switched. A capture that he begins on a borrowed stream is seen: what Reprise enqueues then
// becomes part of his graph, with node ids that name it in the graph and its executables; memory
// and host functions that such works need live until CUDA says that his graph and its executables
// are gone. He may end the capture himself. The device may be wrapped in decorators; on a device
// that is no CUDA device every call throws usage_error. Borrowing the same handle again gives the
// same reference.
//
// Threads: as for what Reprise makes itself.
#pragma once

#include <cuda_runtime_api.h>

#include <source_location>
#include <string>

#include "reprise/device/device.hpp"
#include "reprise/device/graph.hpp"

namespace reprise::cuda {

// The device that is current for the calling thread, as open_device takes it: "cuda:0". Opening it
// shares the primary context, which the runtime and most libraries use. Throws usage_error when
// there is none.
std::string current_device();

// Legacy and per-thread default streams are refused: Reprise has no implicit streams.
stream_ref borrow(device_ref device, cudaStream_t stream,
                  std::source_location from = std::source_location::current());

// Waits for what the stream was given and forgets it, so that its owner may destroy it. References
// to it are void. A stream that is not borrowed is left alone.
void give_back(device_ref device, cudaStream_t stream);

// After its capture has ended. Its nodes can be looked at; those that were enqueued through Reprise
// have their ids.
graph_ref borrow(device_ref device, cudaGraph_t graph,
                 std::source_location from = std::source_location::current());

// Can be launched, and nodes that were enqueued through Reprise switched (`enable`).
executable_ref borrow(device_ref device, cudaGraphExec_t executable,
                      std::source_location from = std::source_location::current());

}  // namespace reprise::cuda
