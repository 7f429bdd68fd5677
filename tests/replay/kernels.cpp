#include "tests/replay/kernels.hpp"

#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"

namespace reprise::test::REPRISE_BODIES {

void scale_followed_cpu(cpu_call&, read<float> x, write<float> y, float a) {
  const view<const float> from = x.followed();
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = a * from[i];
}

void scale_here_cpu(cpu_call&, read<float> x, write<float> y, float a) {
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = a * x[i];
}

void add_to_cpu(cpu_call&, read<float> x, inout<float> to) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += x[i];
}

void add_replay_kernels(kernel_registry& kernels) {
  kernels.add(scale_followed,
              {{device_kind::cpu, "generic", scale_followed_cpu, "default", nullptr, true},
               {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(scale_followed_cuda), "default",
                nullptr, true}});
  kernels.add(scale_here, {{device_kind::cpu, "generic", scale_here_cpu},
                           {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(scale_here_cuda)}});
  kernels.add(add_to, {{device_kind::cpu, "generic", add_to_cpu},
                       {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(add_to_cuda)}});
}

}  // namespace reprise::test::REPRISE_BODIES
