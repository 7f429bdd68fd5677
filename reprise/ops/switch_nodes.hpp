// switch_nodes: switches device-driven nodes of a running graph, from the device.
//
//   nodes, on [n]:   node i runs from now on when on[i] is not 0, and is skipped when it is
//
// `nodes` holds handles of `fixed_executable::handle`, as u64. Launched in the same graph before
// the nodes that it switches, which then follow in the very same launch; a node stays as it was
// left. A node that is in this graph but not behind this kernel follows from the next launch on.
//
// Bodies throw usage_error when the sizes differ.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/kernel/kernel.hpp"

namespace reprise::REPRISE_BODIES {

inline constexpr kernel<void(read<std::uint64_t> nodes, read<std::uint8_t> on)> switch_nodes{
    "switch_nodes"};

void add_switch_nodes(kernel_registry& registry);

namespace ops {

void switch_nodes_cpu(cpu_call&, read<std::uint64_t> nodes, read<std::uint8_t> on);
void switch_nodes_cuda(cuda_call&, read<std::uint64_t> nodes, read<std::uint8_t> on);

// Throws usage_error when the sizes differ.
void check_switch_nodes(std::size_t nodes, std::size_t on);

}  // namespace ops

}  // namespace reprise::REPRISE_BODIES
