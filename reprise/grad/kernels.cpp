#include "reprise/grad/kernels.hpp"

#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"

namespace reprise::REPRISE_BODIES {

void bring_cpu(cpu_call&, read<std::uint8_t> from, write<std::uint8_t> to) {
  copy_elements(from.followed().data(), to.size(), to.data());
}

void put_gradient_cpu(cpu_call&, read<float> sum, inout<float> grad, gradient_rule rule) {
  if (rule == gradient_rule::write) {
    copy_elements(sum.data(), grad.size(), grad.data());
  } else if (rule == gradient_rule::add) {
    for (std::size_t i = 0; i < grad.size(); ++i) grad[i] = grad[i] + sum[i];
  }
}

void add_grad_kernels(kernel_registry& registry) {
  registry.add(bring, {{device_kind::cpu, "generic", bring_cpu, "default", nullptr, true},
                       {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(bring_cuda), "default",
                        nullptr, true}});
  registry.add(put_gradient, {{device_kind::cpu, "generic", put_gradient_cpu},
                              {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(put_gradient_cuda)}});
}

}  // namespace reprise::REPRISE_BODIES
