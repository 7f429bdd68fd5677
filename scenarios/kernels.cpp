#include "scenarios/kernels.hpp"

#include "reprise/kernel/registry.hpp"
#include "reprise/platform/platform.hpp"
#include "scenarios/scenario.hpp"

namespace reprise::scenarios {

std::size_t workspace_of_sum_up(read<std::int32_t> x, write<std::int32_t>) {
  return x.bytes();
}

kernel_registry scenario_kernels() {
  kernel_registry kernels = builtin_kernels();
  kernels.add(append_digit, {{device_kind::cpu, "generic", append_digit_cpu},
                             {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(append_digit_cuda)}});
  kernels.add(add, {{device_kind::cpu, "generic", add_cpu},
                    {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(add_cuda)}});
  kernels.add(times, {{device_kind::cpu, "generic", times_cpu},
                      {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(times_cuda)}});
  kernels.add(sum_up, {{device_kind::cpu, "generic", sum_up_cpu, "default", workspace_of_sum_up},
                       {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(sum_up_cuda), "default",
                        workspace_of_sum_up}});
  kernels.add(append_past, {{device_kind::cpu, "generic", append_past_cpu},
                            {device_kind::cuda, "sm_80", not_built{}}});
  return kernels;
}

}  // namespace reprise::scenarios
