#include "reprise/ops/put_gradient.hpp"

#include <cstdint>

#include "reprise/kernel/registry.hpp"
#include "reprise/ops/each_element.hpp"
#include "reprise/ops/rows.hpp"

namespace reprise::REPRISE_BODIES {

namespace ops {

void check_put_gradient(std::size_t sum, std::size_t grad) {
  need_elements("put_gradient", "grad", grad, sum);
}

void put_gradient_cpu(cpu_call& call, read<float> sum, inout<float> grad, gradient_rule rule) {
  check_put_gradient(sum.size(), grad.size());
  if (rule != gradient_rule::write && rule != gradient_rule::add) return;
  const auto from = sum.data();
  const auto to = grad.data();
  each_element(call, sum.size(), [=](std::int64_t i) {
    const float old = rule == gradient_rule::add ? static_cast<float>(to[i]) : 0.0f;
    to[i] = put(rule, old, from[i]);
  });
}

}  // namespace ops

void add_put_gradient(kernel_registry& registry) {
  registry.add(put_gradient,
               {{device_kind::cpu, "generic", ops::put_gradient_cpu},
                {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(ops::put_gradient_cuda)}});
}

}  // namespace reprise::REPRISE_BODIES
