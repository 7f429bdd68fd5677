#include "reprise/replay/stage_inputs.hpp"

#include <atomic>

#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"

namespace reprise::REPRISE_BODIES {

void stage_inputs_cpu(cpu_call&, read<std::uint8_t> ring, write<std::uint8_t> block,
                      inout<std::uint64_t> words, write<std::uint64_t> consumed,
                      std::uint64_t slot_bytes, std::uint64_t slots, std::uint64_t segments) {
  const auto slot = ring.data() + words[0] % slots * slot_bytes;
  std::uint64_t there = 0;
  read_elements(slot, sizeof there, &there);
  const auto segments_at = slot + stage_header_bytes(block.size());
  for (std::uint64_t i = 0; i < segments; ++i) {
    if ((there >> i & 1) == 0) continue;
    const std::uint64_t offset = words[2 + 2 * i];
    copy_elements(segments_at + offset, words[3 + 2 * i], block.data() + offset);
  }
  ++words[0];
  store_atomically(consumed.data(), words[0], std::memory_order_release);
}

void add_stage_inputs(kernel_registry& registry) {
  registry.add(stage_inputs, {{device_kind::cpu, "generic", stage_inputs_cpu},
                              {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(stage_inputs_cuda)}});
}

}  // namespace reprise::REPRISE_BODIES
