#include "reprise/ops/silu.hpp"

#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/ops/each_element.hpp"
#include "reprise/ops/rows.hpp"

namespace reprise::REPRISE_BODIES {

namespace ops {

void check_silu(std::size_t x, std::size_t y) {
  need_elements("silu", "y", y, x);
}

void check_silu_grad(std::size_t x, std::size_t dy, std::size_t dx) {
  need_elements("silu_grad", "dy", dy, x);
  need_elements("silu_grad", "dx", dx, x);
}

void silu_cpu(cpu_call& call, read<float> x, write<float> y) {
  check_silu(x.size(), y.size());
  map_elements(call, silu_value{}, y, x);
}

void silu_grad_cpu(cpu_call& call, read<float> x, read<float> dy, write<float> dx) {
  check_silu_grad(x.size(), dy.size(), dx.size());
  map_elements(call, silu_gradient{}, dx, x, dy);
}

}  // namespace ops

void add_silu(kernel_registry& registry) {
  registry.add(silu, {{device_kind::cpu, "generic", ops::silu_cpu},
                      {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(ops::silu_cuda)}});
  registry.add(silu_grad, {{device_kind::cpu, "generic", ops::silu_grad_cpu},
                           {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(ops::silu_grad_cuda)}});
}

}  // namespace reprise::REPRISE_BODIES
