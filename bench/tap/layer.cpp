#include "bench/tap/layer.hpp"

#include <bit>

#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"

namespace reprise::bench::REPRISE_BODIES {

void tap_layer_cpu(cpu_call&, read<std::int32_t> weights, read<float> in, write<float> out,
                   float by) {
  std::uint32_t folded = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    folded ^= static_cast<std::uint32_t>(std::int32_t{weights[i]});
  }
  const float sum = std::bit_cast<float>(folded);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = float{in[i]} + by + sum * 1e-30F;
}

void add_tap_layer(kernel_registry& kernels) {
  kernels.add(tap_layer, {{device_kind::cpu, "generic", tap_layer_cpu},
                          {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(tap_layer_cuda)}});
}

}  // namespace reprise::bench::REPRISE_BODIES
