#include "reprise/ops/switch_nodes.hpp"

#include <atomic>

#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/ops/rows.hpp"

namespace reprise::REPRISE_BODIES {

namespace ops {

void check_switch_nodes(std::size_t nodes, std::size_t on) {
  need_elements("switch_nodes", "on", on, nodes);
}

// A handle of a simulated device is the address of the byte that says whether the node runs.
void switch_nodes_cpu(cpu_call&, read<std::uint64_t> nodes, read<std::uint8_t> on) {
  check_switch_nodes(nodes.size(), on.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    auto& enabled = *reinterpret_cast<std::uint8_t*>(static_cast<std::uintptr_t>(nodes[i]));
    std::atomic_ref{enabled}.store(on[i] != 0 ? 1 : 0, std::memory_order_relaxed);
  }
}

}  // namespace ops

void add_switch_nodes(kernel_registry& registry) {
  registry.add(switch_nodes,
               {{device_kind::cpu, "generic", ops::switch_nodes_cpu},
                {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(ops::switch_nodes_cuda)}});
}

}  // namespace reprise::REPRISE_BODIES
