// The CPU bodies of the scenarios' kernels, and the list of all their bodies. Compiled twice: as
// they are, and checked.
#include "scenarios/kernels.hpp"

#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"

namespace reprise::scenarios::REPRISE_BODIES {

namespace {

std::size_t as_much_as_x(read<std::int32_t> x, write<std::int32_t>) {
  return x.bytes();
}

}  // namespace

void append_digit_cpu(cpu_call&, inout<std::int32_t> x, std::int32_t digit) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 10 * x[i] + digit;
}

void add_cpu(cpu_call&, read<std::int32_t> from, inout<std::int32_t> to) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[from.size() == 1 ? 0 : i];
}

void times_cpu(cpu_call&, read<std::int32_t> x, read<std::int32_t> factor, write<std::int32_t> y) {
  const view<const std::int32_t> from = x.followed();
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = from[i] * factor[0];
}

void sum_up_cpu(cpu_call& call, read<std::int32_t> x, write<std::int32_t> sum) {
  const view<std::int32_t> copied = call.workspace<std::int32_t>();
  for (std::size_t i = 0; i < x.size(); ++i) copied[i] = x[i];
  std::int32_t total = 0;
  for (std::size_t i = 0; i < x.size(); ++i) total += copied[i];
  sum[0] = total;
}

void append_past_cpu(cpu_call&, inout<std::int32_t> x, std::int32_t digit) {
  for (std::size_t i = 0; i <= x.size(); ++i) x[i] = 10 * x[i] + digit;
}

void add_scenario_kernels(kernel_registry& kernels) {
  kernels.add(append_digit, {{device_kind::cpu, "generic", append_digit_cpu},
                             {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(append_digit_cuda)}});
  kernels.add(add, {{device_kind::cpu, "generic", add_cpu},
                    {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(add_cuda)}});
  kernels.add(times, {{device_kind::cpu, "generic", times_cpu, "default", nullptr, true},
                      {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(times_cuda), "default",
                       nullptr, true}});
  kernels.add(sum_up, {{device_kind::cpu, "generic", sum_up_cpu, "default", as_much_as_x},
                       {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(sum_up_cuda), "default",
                        as_much_as_x}});
  kernels.add(append_past, {{device_kind::cpu, "generic", append_past_cpu},
                            {device_kind::cuda, "sm_80", not_built{}}});
}

}  // namespace reprise::scenarios::REPRISE_BODIES
