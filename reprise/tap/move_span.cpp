#include "reprise/tap/move_span.hpp"

#include <algorithm>

#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"

namespace reprise::REPRISE_BODIES {

void move_span_cpu(cpu_call&, read<std::uint8_t> from, write<std::uint8_t> to) {
  copy_elements(from.data(), std::min(from.size(), to.size()), to.data());
}

void add_move_span(kernel_registry& registry) {
  registry.add(move_span, {{device_kind::cpu, "generic", move_span_cpu},
                           {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(move_span_cuda)}});
}

}  // namespace reprise::REPRISE_BODIES
