#include "reprise/ops/gelu.hpp"

#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/ops/each_element.hpp"
#include "reprise/ops/rows.hpp"

namespace reprise::REPRISE_BODIES {

namespace ops {

void check_gelu(std::size_t x, std::size_t out) {
  need_elements("gelu", "out", out, x);
}

void check_gelu_grad(std::size_t x, std::size_t dy, std::size_t dx) {
  need_elements("gelu_grad", "dy", dy, x);
  need_elements("gelu_grad", "dx", dx, x);
}

void gelu_cpu(cpu_call& call, read<float> x, write<float> out) {
  check_gelu(x.size(), out.size());
  map_elements(call, gelu_value{}, out, x);
}

void gelu_grad_cpu(cpu_call& call, read<float> x, read<float> dy, write<float> dx) {
  check_gelu_grad(x.size(), dy.size(), dx.size());
  map_elements(call, gelu_gradient{}, dx, x, dy);
}

}  // namespace ops

void add_gelu(kernel_registry& registry) {
  registry.add(gelu, {{device_kind::cpu, "generic", ops::gelu_cpu},
                      {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(ops::gelu_cuda)}});
  registry.add(gelu_grad, {{device_kind::cpu, "generic", ops::gelu_grad_cpu},
                           {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(ops::gelu_grad_cuda)}});
}

}  // namespace reprise::REPRISE_BODIES
