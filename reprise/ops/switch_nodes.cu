// switch_nodes on CUDA: a thread per node. The device-side call needs CUDA 12.4 and no device
// linking.
#include "reprise/cuda/call.cuh"
#include "reprise/ops/switch_nodes.hpp"

namespace reprise::REPRISE_BODIES::ops {

namespace {

constexpr unsigned threads = 128;

__global__ void switch_nodes_grid(read<std::uint64_t> nodes, read<std::uint8_t> on) {
  const std::size_t i = blockIdx.x * std::size_t{threads} + threadIdx.x;
  if (i >= nodes.size()) return;
  const auto node = reinterpret_cast<cudaGraphDeviceNode_t>(nodes.data()[i]);
  cudaGraphKernelNodeSetEnabled(node, on.data()[i] != 0);
}

}  // namespace

void switch_nodes_cuda(cuda_call& call, read<std::uint64_t> nodes, read<std::uint8_t> on) {
  check_switch_nodes(nodes.size(), on.size());
  if (nodes.size() == 0) return;
  const auto blocks = static_cast<unsigned>((nodes.size() + threads - 1) / threads);
  switch_nodes_grid<<<blocks, threads, 0, call.stream()>>>(nodes, on);
}

}  // namespace reprise::REPRISE_BODIES::ops
