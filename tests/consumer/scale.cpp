// The CPU body of scale, which is the reference, and the list of all its bodies.
#include "scale.hpp"

#include <reprise/device/cpu_call.hpp>
#include <reprise/kernel/registry.hpp>

namespace consumer::REPRISE_BODIES {

void scale_cpu(reprise::cpu_call& call, read<float> x, write<float> y, float factor) {
  call.parallel_for(static_cast<std::int64_t>(y.size()), 4096,
                    [&](std::int64_t first, std::int64_t last) {
                      for (std::int64_t i = first; i < last; ++i) {
                        const auto at = static_cast<std::size_t>(i);
                        y[at] = factor * x[at];
                      }
                    });
}

void add_scale(reprise::kernel_registry& registry) {
  registry.add(scale, {{reprise::device_kind::cpu, "generic", scale_cpu},
                       {reprise::device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(scale_cuda)}});
}

}  // namespace consumer::REPRISE_BODIES
