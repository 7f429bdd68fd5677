// The CPU bodies of the kernels of scenarios about training. Compiled twice: as they are, and
// checked.
#include "scenarios/grad_kernels.hpp"

#include <limits>

#include "reprise/base/gradient_rule.hpp"
#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"

namespace reprise::scenarios::REPRISE_BODIES {

void product_cpu(cpu_call&, read<float> a, read<float> b, write<float> y) {
  const view<const float> x = a.followed();
  const view<const float> by = b.followed();
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = x[i % x.size()] * by[i % by.size()];
}

void sum_of_cpu(cpu_call&, read<float> a, read<float> b, write<float> y) {
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = a[i] + b[i];
}

void scale_cpu(cpu_call&, inout<float> x, float by) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = by * x[i];
}

void stow_cpu(cpu_call&, read<float> x, write<std::int32_t> to) {
  const view<const float> from = x.followed();
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = stowed(from[i % from.size()]);
}

void unstow_cpu(cpu_call&, read<std::int32_t> from, write<float> y) {
  for (std::size_t i = 0; i < y.size(); ++i) {
    const std::int32_t first = from[i];
    bool alike = true;
    for (std::size_t j = i; j < from.size(); j += y.size()) alike = alike && from[j] == first;
    y[i] = alike ? unstowed(first) : std::numeric_limits<float>::quiet_NaN();
  }
}

void keep_half_cpu(cpu_call&, read<float> uniform, write<float> kept) {
  for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = uniform[i] >= 0.5F ? 2.0F : 0.0F;
}

void deliver_rows_cpu(cpu_call&, read<float> dy, read<float> x, read<std::int32_t> rule,
                      inout<float> to) {
  const gradient_rule how{rule[0]};
  if (how == gradient_rule::leave) return;
  for (std::size_t j = 0; j < to.size(); ++j) {
    float sum = 0.0F;
    for (std::size_t i = j; i < x.size(); i += to.size()) sum = sum + dy[i] * x[i];
    to[j] = how == gradient_rule::add ? to[j] + sum : sum;
  }
}

void count_step_cpu(cpu_call&, read<float> x, inout<std::int32_t> steps, inout<float> running) {
  steps[0] = steps[0] + 1;
  for (std::size_t j = 0; j < running.size(); ++j) running[j] = 0.5F * running[j] + x[j];
}

void descend_cpu(cpu_call&, read<float> grad, float rate, inout<float> w) {
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = w[i] - rate * grad[i];
}

void add_grad_kernels(kernel_registry& kernels) {
  const auto both = [&](const auto& k, auto cpu, auto cuda, bool follows = false) {
    kernels.add(k, {{device_kind::cpu, "generic", cpu, "default", nullptr, follows},
                    {device_kind::cuda, "sm_80", cuda, "default", nullptr, follows}});
  };
  both(product, product_cpu, REPRISE_CUDA_BODY(product_cuda), true);
  both(sum_of, sum_of_cpu, REPRISE_CUDA_BODY(sum_of_cuda));
  both(scale, scale_cpu, REPRISE_CUDA_BODY(scale_cuda));
  both(stow, stow_cpu, REPRISE_CUDA_BODY(stow_cuda), true);
  both(unstow, unstow_cpu, REPRISE_CUDA_BODY(unstow_cuda));
  both(keep_half, keep_half_cpu, REPRISE_CUDA_BODY(keep_half_cuda));
  both(deliver_rows, deliver_rows_cpu, REPRISE_CUDA_BODY(deliver_rows_cuda));
  both(count_step, count_step_cpu, REPRISE_CUDA_BODY(count_step_cuda));
  both(descend, descend_cpu, REPRISE_CUDA_BODY(descend_cuda));
}

}  // namespace reprise::scenarios::REPRISE_BODIES
